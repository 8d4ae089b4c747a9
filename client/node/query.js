// query.js: calls functions of tq by name, as calls.js has them.
import { calls } from './calls.js'
import { errorOf } from './errors.js'

const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
const milliseconds = { ms: 1, s: 1000, sec: 1000, second: 1000, min: 60000, minute: 60000, h: 3600000, hour: 3600000, d: 86400000, day: 86400000 }

/** Returns the milliseconds of a time that the client itself waits: seconds, or such as '5 min'. */
export function timeOf (interval) {
  if (typeof interval === 'number') return interval * 1000
  const [, number, unit] = /^(\d+(?:\.\d+)?) ?(ms|[a-z]+?)s?$/.exec(interval) ?? []
  const factor = milliseconds[unit]
  if (factor === undefined) throw new TypeError(`${String(interval)} is no time such as 30 or '5 min'`)
  return number * factor
}

/** Returns an interval as the server reads it. */
export const intervalOf = (value) => typeof value === 'number' ? `${value} s` : value

function jsonOf (value, name) {
  const json = JSON.stringify(value)
  if (json === undefined) throw new TypeError(`a ${typeof value} is no JSON, which ${name} is`)
  return json
}

function encode (value, type, name) {
  if (value === null && name !== 'payload') return null
  if (type === 'jsonb') return jsonOf(value, name)
  if (type === 'jsonb[]') return value.map((one) => jsonOf(one, name))
  return type === 'interval' ? intervalOf(value) : value
}

function parse (text) {
  const [, returns, name, list, numbers] = /^(\w+) (\w+)\((.*)\) ?(.*)$/.exec(text)
  const types = list === '' ? [] : list.split(', ').map((argument) => /^(\w+) (.*)$/.exec(argument).slice(1))
  return { returns, name, types: new Map(types), numbers: numbers === '' ? [] : numbers.split(' ') }
}

function statement ({ returns, name, types }, names) {
  const list = names.map((argument, i) => `${argument} => $${i + 1}::${types.get(argument)}`).join(', ')
  if (returns === 'call') return `CALL tq.${name}(${list})`
  return returns === 'value' ? `SELECT tq.${name}(${list})` : `SELECT * FROM tq.${name}(${list})`
}

function decode ({ returns, name, numbers }, rows) {
  for (const row of rows) for (const column of numbers) if (row[column] !== null) row[column] = Number(row[column])
  if (returns === 'rows') return rows
  if (returns === 'values') return rows.map((row) => row[name])
  return returns === 'value' ? rows[0][name] : returns === 'void' ? undefined : rows[0] ?? null
}

/** Returns the rows of a statement, by a pool or a client. */
export const query = (db, text, values) => db.query(text, values).then(({ rows }) => rows, (error) => { throw errorOf(error) })

function callOf (called, texts) {
  const forms = texts.map(parse)
  const kept = new Map()
  return async function (given = {}) {
    const keys = Object.keys(given).filter((key) => given[key] !== undefined)
    const names = keys.map(snake)
    const form = forms.find(({ types }) => names.every((name) => types.has(name)))
    if (!form) throw new TypeError(`${called}() has no argument ${keys.find((key, i) => forms.every(({ types }) => !types.has(names[i]))) ?? keys}`)
    const key = names.join()
    let text = kept.get(key)
    if (!text) kept.set(key, text = statement(form, names))
    const values = keys.map((key, i) => encode(given[key], form.types.get(names[i]), names[i]))
    return decode(form, await query(this.db, text, values))
  }
}

/** The functions of schema tq as methods; db is a pool or a client. */
export class Calls {
  constructor (db) { Object.defineProperty(this, 'db', { value: db }) }
}
for (const name in calls) Calls.prototype[name] = callOf(name, calls[name])
