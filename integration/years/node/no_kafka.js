// no-kafka at work; programs.py describes the actions and what they print.
'use strict'
const Kafka = require('no-kafka')

const CODECS = {
  none: Kafka.COMPRESSION_NONE,
  gzip: Kafka.COMPRESSION_GZIP,
  snappy: Kafka.COMPRESSION_SNAPPY
}
const [action, address, topic, ...args] = process.argv.slice(2)
const options = { connectionString: address, asyncCompression: false, logger: { logLevel: 0 } }

async function write(codecs, count) {
  const producer = new Kafka.Producer({ ...options, requiredAcks: -1 })
  await producer.init()
  for (const codec of codecs.split(',')) {
    const messages = []
    for (let n = 0; n < count; n++) {
      messages.push({ topic, partition: 0, message: { key: `key ${n}`, value: `${codec} ${n}` } })
    }
    const found = await producer.send(messages, { codec: CODECS[codec] })
    const failed = found.find(each => each.error)
    if (failed) throw failed.error
  }
  await producer.end()
}

// f(show) ends when the messages that were asked for have been shown.
function taken(count, subscribe) {
  return new Promise((resolve, reject) => {
    let left = Number(count)
    const show = set => {
      for (const { offset, message } of set) {
        if (left <= 0) return
        console.log([offset, message.key, message.value].join('\t'))
        if (--left === 0) resolve(offset)
      }
    }
    Promise.resolve(subscribe(show)).catch(reject)
  })
}

async function read(count) {
  const consumer = new Kafka.SimpleConsumer(options)
  await consumer.init()
  await taken(count, show => consumer.subscribe(topic, 0, { offset: 0 }, show))
  await consumer.end()
}

async function ends() {
  const consumer = new Kafka.SimpleConsumer(options)
  await consumer.init()
  const first = await consumer.offset(topic, 0, Kafka.EARLIEST_OFFSET)
  console.log(first, await consumer.offset(topic, 0, Kafka.LATEST_OFFSET))
}

async function offsets(group, offset) {
  const consumer = new Kafka.SimpleConsumer({ ...options, groupId: group })
  await consumer.init()
  const [done] = await consumer.commitOffset([{ topic, partition: 0, offset: Number(offset) - 1 }])
  if (done.error) throw done.error
  const [found] = await consumer.fetchOffset([{ topic, partition: 0 }])
  if (found.error) throw found.error
  console.log(Number(found.offset) + 1)
}

async function member(group, count) {
  const consumer = new Kafka.GroupConsumer({
    ...options,
    groupId: group,
    startingOffset: Kafka.EARLIEST_OFFSET
  })
  let last
  const done = taken(count, show =>
    consumer.init({ subscriptions: [topic], handler: set => Promise.resolve(show(set)) })
  )
  last = await done
  await consumer.commitOffset({ topic, partition: 0, offset: last })
  await consumer.end()
}

const actions = { write, read, ends, offsets, member }
actions[action](...args).then(
  () => process.exit(0),
  error => {
    console.error(error)
    process.exit(1)
  }
)
