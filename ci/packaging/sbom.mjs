// What a package is made of, as CycloneDX 1.5:
//
//   sbom.mjs VERSION PLATFORM [ROOT] <PACKAGES     PACKAGES are Debian's, a line "name version"; ROOT/share/doc has their notices
//
// "launcher" is the platform of what has nothing linked in.
import {existsSync, readFileSync} from 'node:fs';
import {join} from 'node:path';

const [version, platform, root = '/usr'] = process.argv.slice(2);
const lines = readFileSync(0, 'utf8').split('\n').filter(Boolean).map((line) => line.split(' '));

// The licences that a notice names, in Debian's machine-readable form; without that form none are guessed.
function licences(name) {
  const file = join(root, 'share/doc', name, 'copyright');
  if (!existsSync(file)) return [];
  const named = [...readFileSync(file, 'utf8').matchAll(/^License: *(\S.*)$/gm)].map(([, text]) => text.trim());
  return [...new Set(named)].sort().map((text) => ({license: {name: text}}));
}
const component = (type, name, its_version, purl, more) => ({type, 'bom-ref': purl, name, version: its_version, purl, ...more});

const components = lines.map(([name, its_version]) => {
  const found = licences(name);
  return component('library', name, its_version, `pkg:deb/debian/${name}@${encodeURIComponent(its_version)}`,
                   found.length > 0 ? {licenses: found} : {});
});
if (platform !== 'launcher') {
  const lock = JSON.parse(readFileSync(join(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '../../gate/web/package-lock.json'), 'utf8'));
  const {version: uplot} = lock.packages['node_modules/uplot'];
  components.push(component('library', 'uplot', uplot, `pkg:npm/uplot@${uplot}`, {licenses: [{license: {id: 'MIT'}}]}));
}
console.log(JSON.stringify({
  bomFormat: 'CycloneDX', specVersion: '1.5', version: 1,
  metadata: {
    timestamp: new Date(Number(process.env.SOURCE_DATE_EPOCH ?? 0) * 1000).toISOString(),
    component: component('application', 'weir', version, `pkg:generic/weir@${version}?platform=${platform}`,
                         {licenses: [{license: {id: 'MIT'}}]}),
  },
  components: components.sort((a, b) => (a.purl < b.purl ? -1 : 1)),
}, null, 1));
