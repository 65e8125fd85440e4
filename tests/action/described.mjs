// Compares requests and answers with GitHub's own description of its API (ci/github-api gets it): each place, method and
// status is described, each field is known there and has its type. The stand-in may leave fields out.
import fs from 'node:fs';
import path from 'node:path';
import {root} from './runner.mjs';

export const description_file = path.join(root, 'build/github-api/node_modules/@octokit/openapi/generated/api.github.com.json');

const kind_of = (value) => value === null ? 'null' : Array.isArray(value) ? 'array' : Number.isInteger(value) ? 'integer' : typeof value;
const is_type = (kind, type) => kind === type || (kind === 'integer' && type === 'number');

export class Description {
  constructor() {
    this.all = JSON.parse(fs.readFileSync(description_file, 'utf8'));
    // The place with the fewest names in braces is meant.
    this.places = Object.keys(this.all.paths).map((place) => ({
      place, names: place.split('{').length,
      pattern: new RegExp(`^${place.replace(/[.]/g, '[.]').replace('/contents/{path}', '/contents/.+').replace(/\{[^}]+\}/g, '[^/]+')}$`)}))
        .sort((a, b) => a.names - b.names);
  }
  resolved(node) {
    return node?.$ref ? this.resolved(node.$ref.split('/').slice(1).reduce((at, key) => at[key], this.all)) : node;
  }
  // Fields that a schema knows, of all its parts; undefined where any name is one.
  fields(schema) {
    const all = {...schema.properties};
    for (const part of (schema.allOf ?? []).map((one) => this.resolved(one))) Object.assign(all, this.fields(part));
    return Object.keys(all).length && !schema.additionalProperties ? all : undefined;
  }
  // What of `value` does not fit `given`: lines that begin with its place.
  problems(given, value, at) {
    const schema = this.resolved(given);
    const kind = kind_of(value);
    if (kind === 'null' && schema?.nullable) return [];
    const choices = schema?.anyOf ?? schema?.oneOf;
    if (choices) {
      const tried = choices.map((choice) => this.problems(choice, value, at));
      return tried.reduce((best, one) => one.length < best.length ? one : best);
    }
    const types = [schema?.type ?? []].flat();
    if (types.length && !types.some((type) => is_type(kind, type))) return [`${at}: ${kind}, not ${types}`];
    if (schema?.enum && !schema.enum.includes(value)) return [`${at}: ${value} is none of ${schema.enum}`];
    if (kind === 'array') return value.flatMap((one, i) => this.problems(schema?.items ?? {}, one, `${at}/${i}`));
    const fields = kind === 'object' && schema && this.fields(schema);
    if (!fields) return [];
    return Object.entries(value).flatMap(([name, one]) => fields[name] ? this.problems(fields[name], one, `${at}/${name}`) : [`${at}/${name}: unknown`]);
  }
  // What of a request, as the stand-in keeps it, and of its answer GitHub does not know.
  of_request({method, target, body, status, answer}) {
    const at = `${method} ${target} ${status}`, url = new URL(target, 'http://api');
    const found = this.places.find(({pattern, place}) => pattern.test(url.pathname) && this.all.paths[place][method.toLowerCase()]);
    if (!found) return [`${at}: no such place`];
    const described = this.all.paths[found.place][method.toLowerCase()];
    const known = (described.parameters ?? []).map((one) => this.resolved(one)).filter((one) => one.in === 'query').map(({name}) => name);
    const problems = [...url.searchParams.keys()].filter((name) => !known.includes(name)).map((name) => `${at}: parameter ${name} is unknown`);
    const wanted = this.resolved(described.requestBody)?.content['application/json']?.schema;
    if (body) problems.push(...(wanted ? this.problems(wanted, JSON.parse(body), `${at} request`) : [`${at}: takes no body`]));
    // Any request may be refused for its token or too many of them, and any answer be known by its ETag.
    if ([304, 401, 403, 429].includes(status)) return problems;
    const response = this.resolved(described.responses[status]);
    if (!response) return [...problems, `${at}: no such status`];
    const schema = response.content?.['application/json']?.schema;
    return schema && answer ? [...problems, ...this.problems(schema, answer, at)] : problems;
  }
}
