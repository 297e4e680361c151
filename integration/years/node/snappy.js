// The interface that kafka-node and no-kafka expect of the package snappy, which wants a compiler.
'use strict'
const { compress, uncompress } = require('snappyjs')

function later(make) {
  return (data, ...rest) => {
    const done = rest.pop()
    let made
    try {
      made = make(data)
    } catch (error) {
      process.nextTick(done, error)
      return
    }
    process.nextTick(done, null, made)
  }
}

module.exports = {
  compress: later(compress),
  uncompress: later(uncompress),
  compressSync: compress,
  uncompressSync: uncompress
}
