// kafkajs at work; programs.py describes the actions and what they print.
'use strict'
const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = require('kafkajs')
const snappy = require('snappyjs')

const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy
}
CompressionCodecs[CompressionTypes.Snappy] = () => ({
  compress: async encoder => Buffer.from(snappy.compress(encoder.buffer)),
  decompress: async buffer => Buffer.from(snappy.uncompress(buffer))
})
const [action, address, topic, ...args] = process.argv.slice(2)
const kafka = new Kafka({ brokers: [address], clientId: 'kafkajs', logLevel: logLevel.ERROR })

async function write(codecs, count) {
  const producer = kafka.producer()
  await producer.connect()
  for (const codec of codecs.split(',')) {
    const messages = []
    for (let n = 0; n < count; n++) {
      messages.push({ key: `key ${n}`, value: `${codec} ${n}`, partition: 0 })
    }
    await producer.send({ topic, acks: -1, compression: CODECS[codec], messages })
  }
  await producer.disconnect()
}

async function member(group, count) {
  const consumer = kafka.consumer({ groupId: group })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  let left = Number(count)
  await new Promise((resolve, reject) => {
    consumer
      .run({
        eachMessage: async ({ message }) => {
          if (left <= 0) return
          console.log([message.offset, message.key, message.value].join('\t'))
          if (--left === 0) resolve()
        }
      })
      .catch(reject)
  })
  await consumer.disconnect()
}

async function ends() {
  const admin = kafka.admin()
  await admin.connect()
  const [found] = await admin.fetchTopicOffsets(topic)
  console.log(found.low === undefined ? 0 : found.low, found.high || found.offset)
  await admin.disconnect()
}

async function offsets(groupId, offset) {
  const admin = kafka.admin()
  await admin.connect()
  await admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset }] })
  const [found] = await admin.fetchOffsets({ groupId, topic })
  console.log(found.offset)
  await admin.disconnect()
}

async function admin() {
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions: 2 }] })
  await admin.deleteTopics({ topics: [topic] })
  await admin.disconnect()
}

const read = count => member(`reads ${topic} ${Date.now()}`, count)
const actions = { write, read, ends, offsets, member, admin }
actions[action](...args).then(
  () => process.exit(0),
  error => {
    console.error(error)
    process.exit(1)
  }
)
