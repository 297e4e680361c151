// kafka-node at work; programs.py describes the actions and what they print.
'use strict'
const kafka = require('kafka-node')

const CODECS = { none: 0, gzip: 1, snappy: 2 }
const [action, address, topic, ...args] = process.argv.slice(2)

function call(object, method, ...given) {
  return new Promise((resolve, reject) => {
    object[method](...given, (error, found) => (error ? reject(error) : resolve(found)))
  })
}

function ready(object) {
  return new Promise((resolve, reject) => object.once('ready', resolve).once('error', reject))
}

async function connected() {
  const client = new kafka.KafkaClient({ kafkaHost: address, autoConnect: true })
  await ready(client)
  return client
}

async function write(codecs, count) {
  const client = await connected()
  const producer = new kafka.Producer(client, { requireAcks: -1 })
  for (const codec of codecs.split(',')) {
    const messages = []
    for (let n = 0; n < count; n++) messages.push(new kafka.KeyedMessage(`key ${n}`, `${codec} ${n}`))
    await call(producer, 'send', [{ topic, partition: 0, messages, attributes: CODECS[codec] }])
  }
}

function show(message) {
  console.log([message.offset, message.key, message.value].join('\t'))
}

async function read(count) {
  const client = await connected()
  const wanted = [{ topic, partition: 0, offset: 0 }]
  const consumer = new kafka.Consumer(client, wanted, { autoCommit: false, fromOffset: true })
  await take(consumer, Number(count))
}

function take(consumer, count) {
  return new Promise((resolve, reject) => {
    let left = count
    consumer.on('error', reject)
    consumer.on('message', message => {
      if (left <= 0) return
      show(message)
      if (--left === 0) resolve()
    })
  })
}

async function ends() {
  const offset = new kafka.Offset(await connected())
  const first = await call(offset, 'fetchEarliestOffsets', [topic])
  const last = await call(offset, 'fetchLatestOffsets', [topic])
  console.log(first[topic][0], last[topic][0])
}

async function offsets(group, where) {
  const offset = new kafka.Offset(await connected())
  const wanted = { topic, partition: 0, offset: Number(where), metadata: 'm' }
  await call(offset, 'commit', group, [wanted])
  const found = await call(offset, 'fetchCommits', group, [{ topic, partition: 0 }])
  console.log(found[topic][0])
}

async function member(group, count) {
  const options = { kafkaHost: address, groupId: group, fromOffset: 'earliest', autoCommit: false }
  const consumer = new kafka.ConsumerGroup(options, [topic])
  await take(consumer, Number(count))
  await call(consumer, 'commit', true)
  await call(consumer, 'close', false)
}

async function admin() {
  const client = await connected()
  await call(client, 'createTopics', [{ topic, partitions: 2, replicationFactor: 1 }])
  const all = await call(new kafka.Admin(client), 'listTopics')
  console.log(Object.keys(all[1].metadata[topic]).length)
}

const actions = { write, read, ends, offsets, member, admin }
actions[action](...args).then(
  () => process.exit(0),
  error => {
    console.error(error)
    process.exit(1)
  }
)
