// optiopay/kafka at work; programs.py describes the actions and what they print.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	kafka "MODULE"
	"MODULE/proto"
)

var codecs = map[string]proto.Compression{
	"none":   proto.CompressionNone,
	"gzip":   proto.CompressionGzip,
	"snappy": proto.CompressionSnappy,
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func number(text string) int64 {
	return must(strconv.ParseInt(text, 10, 64))
}

func main() {
	broker := must(kafka.Dial([]string{os.Args[2]}, kafka.NewBrokerConf("optiopay")))
	defer broker.Close()
	args := os.Args[3:]
	switch os.Args[1] {
	case "write":
		for _, codec := range strings.Split(args[1], ",") {
			write(broker, args[0], codec, number(args[2]))
		}
	case "read":
		read(broker, args[0], number(args[1]))
	case "ends":
		fmt.Println(must(broker.OffsetEarliest(args[0], 0)), must(broker.OffsetLatest(args[0], 0)))
	case "offsets":
		offsets(broker, args[1], args[0], number(args[2]))
	default:
		panic(os.Args[1])
	}
}

func write(broker *kafka.Broker, topic string, codec string, count int64) {
	config := kafka.NewProducerConf()
	config.Compression = codecs[codec]
	config.RequiredAcks = proto.RequiredAcksAll
	var messages []*proto.Message
	for n := int64(0); n < count; n++ {
		messages = append(messages, &proto.Message{
			Key: []byte(fmt.Sprintf("key %d", n)), Value: []byte(fmt.Sprintf("%s %d", codec, n)),
		})
	}
	must(broker.Producer(config).Produce(topic, 0, messages...))
}

func read(broker *kafka.Broker, topic string, count int64) {
	config := kafka.NewConsumerConf(topic, 0)
	config.StartOffset = kafka.StartOffsetOldest
	config.RetryWait = 50 * time.Millisecond
	consumer := must(broker.Consumer(config))
	for ; count > 0; count-- {
		message := must(consumer.Consume())
		fmt.Printf("%d\t%s\t%s\n", message.Offset, message.Key, message.Value)
	}
}

func offsets(broker *kafka.Broker, group string, topic string, offset int64) {
	config := kafka.NewOffsetCoordinatorConf(group)
	config.RetryErrLimit = 20
	config.RetryErrWait = 200 * time.Millisecond
	coordinator := must(broker.OffsetCoordinator(config))
	must(0, coordinator.Commit(topic, 0, offset))
	found, _, err := coordinator.Offset(topic, 0)
	fmt.Println(must(found, err))
}
