// Peer: Express 5 with better-sqlite3, one transaction per request.
const crypto = require('node:crypto')
const express = require('express')
const Database = require('better-sqlite3')

const secret = Buffer.from(process.env.STD_SECRET.replace(/^whsec_/, ''), 'base64')
const tolerance = 300

const db = new Database(process.env.PEER_DB)
db.pragma('journal_mode = WAL')
db.pragma('synchronous = FULL')
db.exec(process.env.PEER_SCHEMA)
const addEvent = db.prepare(
  'INSERT INTO event (key, kind, received_at, headers, body) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING')
const addOutbox = db.prepare('INSERT INTO outbox (event_id, due_at) VALUES (?, ?)')
const store = db.transaction((key, kind, headers, body) => {
  const now = Date.now()
  const added = addEvent.run(key, kind, now, headers, body)
  if (added.changes) addOutbox.run(added.lastInsertRowid, now)
}).immediate

function verified (id, timestamp, signatures, body) {
  if (!id || !signatures || !/^[0-9]+$/.test(timestamp)) return false
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > tolerance) return false
  const wanted = crypto.createHmac('sha256', secret).update(`${id}.${timestamp}.`).update(body).digest()
  return signatures.split(' ').some(signature => {
    const given = Buffer.from(signature.slice(3), 'base64')
    return signature.startsWith('v1,') && given.length === wanted.length && crypto.timingSafeEqual(given, wanted)
  })
}

const app = express()
app.disable('x-powered-by')
app.disable('etag')
app.post('/hooks/std', express.raw({ type: '*/*', limit: '1mb' }), (request, response) => {
  const id = request.get('webhook-id')
  if (!verified(id, request.get('webhook-timestamp'), request.get('webhook-signature'), request.body)) {
    return response.status(401).end()
  }
  store(id, JSON.parse(request.body).type ?? '', JSON.stringify(request.headers), request.body)
  response.status(200).end()
})
app.listen(Number(process.env.PEER_PORT), '127.0.0.1', 2048)
