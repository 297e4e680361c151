// kafkajs at work; programs.py describes the actions and what they print.
'use strict'

const { Kafka, CompressionTypes, CompressionCodecs, ConfigResourceTypes, logLevel } = require('kafkajs')
const SnappyCodec = require('kafkajs-snappy')

CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec

const TIME = 1600000000000
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
}
const [action, address, ...args] = process.argv.slice(2)
const kafka = new Kafka({ brokers: [address], logLevel: logLevel.ERROR })
const show = (...words) => console.log(...words)
const text = (data) => (data === null || data === undefined ? 'null' : data.toString())

async function write([topic, codecs, count, idempotent]) {
  for (const codec of codecs.split(',')) {
    const producer = kafka.producer({ idempotent: idempotent === 'true' })
    await producer.connect()
    const messages = Array.from({ length: Number(count) }, (_, n) => ({
      partition: 0,
      key: `key ${n}`,
      value: `${codec} ${n}`,
      timestamp: String(TIME + n),
      headers: { codec, empty: '' },
    }))
    const [sent] = await producer.send({ topic, acks: -1, compression: CODECS[codec], messages })
    for (let n = 0; n < messages.length; n++) show(Number(sent.baseOffset) + n)
    await producer.disconnect()
  }
}

async function transactions([transactionalId, topic, consumerGroupId, count]) {
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1, transactionalId })
  await producer.connect()
  for (let n = 0; n < Number(count); n++) {
    const transaction = await producer.transaction()
    const messages = [{ partition: 0, value: `${transactionalId} ${n}` }]
    await transaction.send({ topic, acks: -1, messages })
    const partitions = [{ partition: 0, offset: String(n + 1) }]
    await transaction.sendOffsets({ consumerGroupId, topics: [{ topic, partitions }] })
    if (n % 3 === 2) await transaction.abort()
    else await transaction.commit()
  }
  await producer.disconnect()
  show('done')
}

async function read(pairs, readUncommitted = true) {
  for (let at = 0; at < pairs.length; at += 2) {
    const topic = pairs[at]
    let left = Number(pairs[at + 1])
    const groupId = `${topic}-kafkajs-${process.pid}`
    const consumer = kafka.consumer({ groupId, readUncommitted })
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    await new Promise((resolve) => {
      consumer.run({
        eachMessage: async ({ partition, message }) => {
          if (partition !== 0) return
          // Headers of one name come as an array.
          const headers = Object.entries(message.headers || {}).flatMap(([name, values]) =>
            [].concat(values).map((value) => `${name}=${text(value)}`),
          )
          const fields = [message.offset, message.timestamp ?? -1, text(message.key), text(message.value)]
          show([topic, ...fields, headers.join(',')].join('\t'))
          if (--left === 0) resolve()
        },
      })
    })
    await consumer.disconnect()
  }
}

async function times([topic, ...asked]) {
  const admin = kafka.admin()
  await admin.connect()
  const [ends] = (await admin.fetchTopicOffsets(topic)).filter(({ partition }) => partition === 0)
  show(ends.low)
  show(ends.high)
  for (const time of asked) {
    const found = await admin.fetchTopicOffsetsByTimestamp(topic, Number(time))
    show(found.find(({ partition }) => partition === 0).offset)
  }
  await admin.disconnect()
}

async function member([groupId, topic]) {
  const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 1000 })
  await consumer.connect()
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    show(`assigned ${(payload.memberAssignment[topic] || []).sort().join(',')}`)
  })
  consumer.on(consumer.events.REBALANCING, () => show('revoked'))
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      show('message', partition, message.offset)
      const offset = String(Number(message.offset) + 1)
      await consumer.commitOffsets([{ topic, partition, offset }])
    },
  })
  process.stdin.resume()
  await new Promise((resolve) => process.stdin.on('end', resolve))
  await consumer.disconnect()
  show('closed')
}

async function administer([topic]) {
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 2, replicationFactor: 1 }] })
  show('listed', (await admin.listTopics()).includes(topic))
  const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
  const configEntries = [{ name: 'retention.ms', value: '123456' }]
  await admin.alterConfigs({ resources: [{ ...resource, configEntries }] })
  const { resources } = await admin.describeConfigs({ resources: [{ ...resource, configNames: ['retention.ms'] }] })
  show('retention', resources[0].configEntries[0].configValue)
  await admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] })
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
  show('partitions', topics[0].partitions.length)
  await admin.deleteTopics({ topics: [topic] })
  show('listed', (await admin.listTopics()).includes(topic))
  await admin.disconnect()
}

async function remove([topic, before]) {
  const admin = kafka.admin()
  await admin.connect()
  await admin.fetchTopicOffsets(topic) // or deleteTopicRecords does not know the topic
  await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: before }] })
  const [ends] = await admin.fetchTopicOffsets(topic)
  show(ends.low, ends.high)
  await admin.disconnect()
}

const committed = (pairs) => read(pairs, false)
const actions = { write, read, committed, transactions, times, member, admin: administer, delete: remove }
actions[action](args).then(
  () => process.exit(0),
  (error) => {
    console.error(error)
    process.exit(1)
  },
)
