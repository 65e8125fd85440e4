// Makes the tables of structs.h, and of a twin's commands (state.h), from Vulkan's registry:
//   node registry.mjs vk.xml newer.json STRUCTS.cpp COMMANDS.cpp
//
// Reads the few elements of Vulkan's registry that it needs, line by line of their tags; what does not
// look as expected stops the build. Places of members are left to the compiler (sizeof, offsetof).
import { readFileSync, writeFileSync } from 'node:fs';

const [registry, supplement, structsOut, commandsOut] = process.argv.slice(2);
if (!commandsOut) throw new Error('usage: registry.mjs vk.xml newer.json STRUCTS.cpp COMMANDS.cpp');
const xml = readFileSync(registry, 'utf8').replace(/<!--[^]*?-->/g, '');
const newer = JSON.parse(readFileSync(supplement, 'utf8'));

const attributes = (tag) =>
  Object.fromEntries([...tag.matchAll(/([a-zA-Z]+)="([^"]*)"/g)].map((m) => [m[1], m[2]]));
// What a pattern finds: the attributes of a tag (its first group), and what stands in the element (the second).
const elements = (text, pattern) => [...text.matchAll(pattern)].map((m) => [attributes(m[1] ?? ''), m[2]]);
const forVulkan = (a) => !a.api || a.api.split(',').includes('vulkan');

// Which version of Vulkan names a type, and which types are for other platforms than this one.
const core = new Map();
const elsewhere = new Set();
const instanceExtensions = [];
// Values: enum -> name -> number, aliases resolved at the end.
const values = new Map();
const constants = new Map();
const pending = [];
const valuesOf = (name) => values.get(name) ?? values.set(name, new Map()).get(name);

function addValue(group, a, extension) {
  if (!group || !forVulkan(a)) return;
  if (a.alias) return void pending.push([group, a.name, a.alias]);
  let value;
  if (a.bitpos !== undefined) value = 1n << BigInt(a.bitpos);
  else if (a.offset !== undefined) {
    const number = BigInt(a.extnumber ?? extension);
    value = 1000000000n + (number - 1n) * 1000n + BigInt(a.offset);
    if (a.dir === '-') value = -value;
  } else if (/^-?(0x[0-9a-fA-F]+|[0-9]+)(ULL|U)?$/.test(a.value ?? '')) {
    const text = a.value.replace(/U(LL)?$/, '');
    value = text.startsWith('-') ? -BigInt(text.slice(1)) : BigInt(text);
  } else throw new Error(`value of ${a.name}: ${a.value}`);
  if (value >= 1n << 63n) value -= 1n << 64n;
  valuesOf(group).set(a.name, value);
}

// Those that a version of Vulkan or an extension adds to enums.
function addValues(required, extension) {
  for (const [a] of elements(required, /<enum ([^>]*?)\/?>/g)) addValue(a.extends, a, extension);
}

// Commands: first parameter and group (a command and its aliases), and where each is from.
const commands = new Map();
for (const [a, inside] of elements(xml, /<command\b([^>]*[^/])?>([^]*?)<\/command>/g)) {
  const name = inside.match(/<proto>[^]*?<name>(\w+)<\/name>/)?.[1];
  if (name && forVulkan(a)) {
    commands.set(name, { first: inside.match(/<param[^>]*>[^]*?<type>(\w+)<\/type>/)[1], group: commands.size });
  }
}
for (const [a] of elements(xml, /<command ([^>]*)\/>/g)) {
  if (a.alias && forVulkan(a)) commands.set(a.name, commands.get(a.alias));
}
// Accepted by a twin: they leave nothing behind. (What is destroyed was a number that was made up, or is null.)
const accepted = [
  'SetDebugUtilsObjectNameEXT', 'SetDebugUtilsObjectTagEXT', 'QueueBeginDebugUtilsLabelEXT',
  'QueueEndDebugUtilsLabelEXT', 'QueueInsertDebugUtilsLabelEXT', 'CmdBeginDebugUtilsLabelEXT',
  'CmdEndDebugUtilsLabelEXT', 'CmdInsertDebugUtilsLabelEXT', 'DebugMarkerSetObjectTagEXT',
  'DebugMarkerSetObjectNameEXT', 'CmdDebugMarkerBeginEXT', 'CmdDebugMarkerEndEXT', 'CmdDebugMarkerInsertEXT',
  'DestroyDebugUtilsMessengerEXT', 'SubmitDebugUtilsMessageEXT', 'DestroyDebugReportCallbackEXT',
  'DebugReportMessageEXT', 'UnmapMemory', 'FlushMappedMemoryRanges', 'InvalidateMappedMemoryRanges',
  'SetDeviceMemoryPriorityEXT', 'MergePipelineCaches', 'UpdateDescriptorSets', 'UpdateDescriptorSetWithTemplate',
  'TrimCommandPool', 'CmdBeginQuery', 'CmdBindPipeline', 'CmdBindDescriptorSets', 'CmdPushConstants',
  'CmdDispatch', 'CmdDispatchIndirect', 'CmdDispatchBase', 'CmdSetDeviceMask', 'CmdPipelineBarrier',
  'CmdPipelineBarrier2', 'CmdPushDescriptorSetKHR', 'CmdPushDescriptorSetWithTemplateKHR',
  // Lists that have nothing in them, and a number that is 0.
  'GetDeviceGroupPeerMemoryFeatures', 'EnumerateInstanceLayerProperties', 'GetPipelineExecutableStatisticsKHR',
  'GetPipelineExecutableInternalRepresentationsKHR', 'EnumerateDeviceLayerProperties',
  'GetPhysicalDeviceSparseImageFormatProperties', 'GetPhysicalDeviceSparseImageFormatProperties2',
  'GetPhysicalDeviceToolProperties', 'GetPhysicalDeviceFragmentShadingRatesKHR',
  'GetPhysicalDeviceCooperativeMatrixPropertiesNV',
];
// Objects of which nothing is kept but their handle.
const numbered = [
  'CreateDebugUtilsMessengerEXT', 'CreateDebugReportCallbackEXT', 'CreateShaderModule', 'CreatePipelineLayout',
  'CreatePipelineCache', 'CreateSampler', 'CreateBufferView', 'CreateDescriptorSetLayout', 'CreateDescriptorUpdateTemplate',
];
// Objects of which one piece of memory is kept.
const freed = ['Fence', 'Semaphore', 'Event', 'QueryPool', 'Buffer', 'DescriptorPool'].map((name) => `vkDestroy${name}`);
const groups = (names) => new Set(names.map((name) => commands.get(`vk${name}`).group));
const [acceptedGroups, numberedGroups] = [groups(accepted), groups(numbered)];
const level = (first) => ({ VkInstance: 'instance', VkPhysicalDevice: 'physical', VkDevice: 'device', VkQueue: 'device',
  VkCommandBuffer: 'device' })[first] ?? 'instance';
const rows = new Map();
function addCommands(required, since, extension, typed) {
  for (const [{ name }] of elements(required, /<command ([^>]*?)\/?>/g)) {
    const { first, group } = commands.get(name);
    const at = level(first);
    let otherwise = 'nullptr';
    if (acceptedGroups.has(group)) otherwise = `NoOperation<PFN_${name}>::call`;
    else if (numberedGroups.has(group)) otherwise = `HandleMaker<PFN_${name}>::call`;
    else if (at === 'device' && typed) {
      otherwise = freed.includes(name) ? `Deleter<PFN_${name}>::call` : name.startsWith('vkDestroy') ? `NoOperation<PFN_${name}>::call`
        : `Refusal<PFN_${name}, Text("${name}")>::call`;
    }
    if (!rows.has(name)) rows.set(name, { otherwise, group, typed, rest: [`k_${at}`, since, extension] });
  }
}
for (const [group, inside] of elements(xml, /<enums ([^>]*?)>([^]*?)<\/enums>/g)) {
  for (const [a] of elements(inside, /<enum ([^>]*?)\/?>/g)) {
    if (group.name === 'API Constants') {
      if (/^[0-9]+$/.test(a.value ?? '')) constants.set(a.name, Number(a.value));
    } else addValue(group.name, a, undefined);
  }
}
for (const [a, inside] of elements(xml, /<feature ([^>]*?)>([^]*?)<\/feature>/g)) {
  if (!forVulkan(a)) continue;
  const minor = Number(a.number.split('.')[1]);
  addCommands(inside, minor + 1, 'nullptr', true);
  for (const [type] of elements(inside, /<type ([^>]*?)\/?>/g)) core.set(type.name, minor);
  addValues(inside, undefined);
}
for (const [a, inside] of elements(xml, /<extension ([^>]*?)(?<!\/)>([^]*?)<\/extension>/g)) {
  const supported = a.supported?.split(',').includes('vulkan');
  if (!supported || (a.platform && a.platform !== 'provisional')) {
    for (const [type] of elements(inside, /<type ([^>]*?)\/?>/g)) elsewhere.add(type.name);
  }
  if (!supported) continue;
  if (a.type === 'instance') instanceExtensions.push(a.name);
  if (!a.platform) addCommands(inside, 0, a.type === 'instance' ? 'nullptr' : `"${a.name}"`, true);
  addValues(inside, a.number);
}
for (const c of newer.commands) {
  if (rows.has(c.name)) continue;
  commands.set(c.name, commands.get(c.alias) ?? { first: c.first, group: commands.size });
  addCommands(`<command name="${c.name}"/>`, 0, c.extension ? `"${c.extension}"` : 'nullptr', false);
}
for (let round = 0; round < 4; ++round) {
  for (const [group, name, alias] of pending) {
    const value = valuesOf(group).get(alias);
    if (value !== undefined) valuesOf(group).set(name, value);
  }
}
for (const [group, more] of Object.entries(newer.enums)) {
  for (const [name, value] of Object.entries(more)) {
    if (!valuesOf(group).has(name)) valuesOf(group).set(name, BigInt(value));
  }
}

// Flags types: name -> [enum of their bits, bytes].
const flags = new Map();
for (const [a, inside] of elements(xml, /<type ([^>]*?category="bitmask"[^>]*?)(?<!\/)>([^]*?);<\/type>/g)) {
  const name = inside.match(/<name>(\w+)<\/name>/)?.[1];
  if (name) flags.set(name, [a.requires ?? a.bitvalues, /VkFlags64/.test(inside) ? 8 : 4]);
}
for (const [a] of elements(xml, /<type ([^>]*?category="bitmask"[^>]*?)\/>/g)) {
  if (a.alias && flags.has(a.alias)) flags.set(a.name, flags.get(a.alias));
}

// Structs by name.
const structs = new Map();
const aliases = new Map();
for (const [a] of elements(xml, /<type ([^>]*?category="struct"[^>]*?)\/>/g)) {
  if (a.alias) aliases.set(a.name, a.alias);
}
const structElement = /<type ([^>]*?category="struct"[^>]*?)(?<!\/)>([^]*?)<\/type>\s*(?=<type |<\/types>|<comment>)/g;
for (const [a, inside] of elements(xml, structElement)) {
  const fields = [];
  let type;
  for (const [member, written] of elements(inside, /<member\b([^>]*)>([^]*?)<\/member>/g)) {
    if (!forVulkan(member)) continue;
    const text = written.replace(/<comment>[^]*?<\/comment>/g, '');
    const name = text.match(/<name>(\w+)<\/name>/)[1];
    const ofType = text.match(/<type>(\w+)<\/type>/)[1];
    if (name === 'sType') type = member.values;
    const dimensions = [...text.split('</name>')[1].matchAll(/\[(?:<enum>)?(\w+)(?:<\/enum>)?\]/g)].map((d) => d[1]);
    fields.push({ name, type: ofType, pointer: text.includes('*'), bits: text.includes('</name>:'), dimensions });
  }
  structs.set(a.name, { name: a.name, fields, sType: type, extends: (a.structextends ?? '').split(',') });
}

// Those wanted: what stands in the two chains, and what weir writes by itself.
const basic = {
  uint8_t: ['UNSIGNED', 1], uint32_t: ['UNSIGNED', 4], uint64_t: ['UNSIGNED', 8], size_t: ['UNSIGNED', 8],
  VkDeviceSize: ['UNSIGNED', 8], int32_t: ['SIGNED', 4], float: ['FLOAT', 4], char: ['TEXT', 1], VkBool32: ['BOOL', 4],
};
const wanted = new Map();
const usedEnums = new Map();
const enumIndex = (name) => usedEnums.get(name) ?? usedEnums.set(name, usedEnums.size).get(name);
const declared = [];

function add(struct, chain) {
  if (wanted.has(struct.name)) return wanted.get(struct.name);
  const fields = [];
  for (const f of struct.fields) {
    if (f.name === 'sType' || f.name === 'pNext') continue;
    if (f.pointer || f.bits || f.dimensions.length > 1) return null;  // filled by nobody
    const array = f.dimensions.length === 1;
    const count = array ? constants.get(f.dimensions[0]) ?? Number(f.dimensions[0]) : 1;
    if (!Number.isInteger(count)) throw new Error(`${struct.name}.${f.name}: ${f.dimensions}`);
    const field = { name: f.name, array, count, of: -1 };
    if (basic[f.type]) [field.kind, field.size] = basic[f.type];
    else if (flags.has(f.type)) {
      const [bits, size] = flags.get(f.type);
      [field.kind, field.size] = ['FLAGS', size];
      if (bits && values.has(bits)) field.of = enumIndex(bits);
    } else if (values.has(f.type)) {
      [field.kind, field.size, field.of] = ['ENUM', 4, enumIndex(f.type)];
    } else {
      const inner = structs.has(f.type) && add(structs.get(f.type), 'NONE');
      if (!inner) return null;
      [field.kind, field.inner] = ['STRUCT', inner];
    }
    fields.push(field);
  }
  const type = struct.type ?? (struct.sType ? valuesOf('VkStructureType').get(struct.sType) : 0n);
  if (type === undefined) throw new Error(`no value for ${struct.sType}`);
  if (chain !== 'NONE' && (type === 0n || fields.length === 0)) throw new Error(`${struct.name} is not as expected`);
  const entry = { name: struct.name, type, chain, fields, index: wanted.size, core: core.get(struct.name) ?? 0 };
  wanted.set(struct.name, entry);
  return entry;
}

for (const s of structs.values()) {
  if (elsewhere.has(s.name)) continue;
  if (s.extends.includes('VkPhysicalDeviceFeatures2')) add(s, 'FEATURES');
  else if (s.extends.includes('VkPhysicalDeviceProperties2')) add(s, 'PROPERTIES');
}
for (const name of ['VkPhysicalDeviceProperties', 'VkPhysicalDeviceFeatures', 'VkPhysicalDeviceMemoryProperties',
  'VkQueueFamilyProperties', 'VkFormatProperties']) {
  if (!add(structs.get(name), 'NONE')) throw new Error(`${name} is not as expected`);
}
for (const s of newer.structs) {
  // The registry may have it under the name it got when it was promoted.
  const known = structs.has(s.name) ? s.name : aliases.get(s.name);
  if (known) {
    if (!wanted.has(known)) add(structs.get(known), (s.chain ?? 'none').toUpperCase());
    continue;
  }
  const fields = s.fields.map(([name, type]) => ({ name, type, dimensions: [] }));
  const size = (type) => (basic[type] ? type : flags.has(type) ? 'uint32_t' : 'int32_t');
  declared.push(`struct ${s.name} {\n  VkStructureType sType;\n  void* pNext;\n` +
    s.fields.map(([name, type]) => `  ${size(type)} ${name};\n`).join('') + '};');
  add({ name: s.name, fields, type: BigInt(s.type) }, (s.chain ?? 'none').toUpperCase());
}
const formats = enumIndex('VkFormat');
if (formats === undefined || wanted.size < 100) throw new Error(`only ${wanted.size} structs found`);

const text = [];
text.push('// Made by gate/probes/twin/registry.mjs: do not edit.', '#define VK_ENABLE_BETA_EXTENSIONS',
  '#include "gate/probes/twin/structs.h"', '', '#include <vulkan/vulkan.h>', '', 'namespace {', '');
text.push(...declared, '');
for (const s of wanted.values()) {
  if (s.fields.length === 0) continue;
  text.push(`const weir_field k_fields_${s.index}[] = {`);
  for (const f of s.fields) {
    const size = f.inner ? `sizeof(${f.inner.name})` : f.size;
    text.push(`    {"${f.name}", offsetof(${s.name}, ${f.name}), ${f.count}, ${size}, WEIR_FIELD_${f.kind}, ${Number(f.array)}, ${f.inner ? f.inner.index : f.of}},`);
  }
  text.push('};');
}
for (const [name, index] of usedEnums) {
  text.push(`const weir_value k_values_${index}[] = {  // ${name}`);
  for (const [value, number] of values.get(name)) text.push(`    {"${value}", ${number}LL},`);
  text.push('    {nullptr, 0}};');
}
text.push('', '}  // namespace', '', 'extern "C" {', '', 'const weir_struct weir_structs[] = {');
for (const s of wanted.values()) {
  const fields = s.fields.length ? `k_fields_${s.index}` : 'nullptr';
  text.push(`    {"${s.name}", ${s.type}u, sizeof(${s.name}), ${fields}, ${s.fields.length}, WEIR_CHAIN_${s.chain}, ${s.core}},`);
}
text.push('};', `const uint32_t weir_struct_count = ${wanted.size};`);
const named = [...aliases, ...Object.entries(newer.aliases)].filter(([name, of]) => wanted.has(of) && !wanted.has(name));
const unique = new Map(named);
text.push('const weir_alias weir_aliases[] = {');
for (const [name, of] of unique) text.push(`    {"${name}", ${wanted.get(of).index}},`);
text.push('};', `const uint32_t weir_alias_count = ${unique.size};`);
text.push('const weir_enum weir_enums[] = {');
for (const [name, index] of usedEnums) text.push(`    {"${name}", k_values_${index}, ${values.get(name).size}},`);
text.push('};', `const uint32_t weir_enum_count = ${usedEnums.size};`);
text.push('const char* const weir_instance_extensions[] = {', ...instanceExtensions.map((e) => `    "${e}",`), '};',
  `const uint32_t weir_instance_extension_count = ${instanceExtensions.length};`, '', '}', '');
writeFileSync(structsOut, text.join('\n'));

// What the driver's files define: a command under any of its names. Those that they do not define are null.
const ours = new Map(newer.commands.filter((c) => c.function).map((c) => [c.name, c.function]));
const namesOf = new Map();
for (const [name, { group, typed }] of rows) {
  const own = ours.get(name) ?? (typed && name);
  if (own) namesOf.set(group, [...(namesOf.get(group) ?? []), own]);
}
const declarations = [...rows].filter(([, row]) => row.typed)
  .map(([name]) => `extern "C" __attribute__((weak, visibility("hidden"))) decltype(${name}) ${name};`);
const table = [...rows].map(([name, { otherwise, group, rest }]) =>
  `    {"${name}", first_function(${[...(namesOf.get(group) ?? []), otherwise].filter((one) => one !== 'nullptr').join(', ')}), ${rest.join(', ')}},`);
writeFileSync(commandsOut, ['// Made by gate/probes/twin/registry.mjs: do not edit.', '#include "gate/probes/twin/state.h"', '',
  ...declarations, '', 'namespace weir_twin {', '', 'const Command g_commands[] = {', ...table, '};',
  `const uint32_t k_command_count = ${rows.size};`, '', '}  // namespace weir_twin', ''].join('\n'));
