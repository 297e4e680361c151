// sarama at work; programs.py describes the actions and what they print.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"MODULE"
)

var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
}

var versions = map[string]sarama.KafkaVersion{
	"0.8.2.2": sarama.V0_8_2_2, "0.9": sarama.V0_9_0_1, "0.10": sarama.V0_10_0_0,
	"0.10.2": sarama.V0_10_2_0,
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

// VERSION is how old sarama believes the cluster to be.
func config() *sarama.Config {
	made := sarama.NewConfig()
	version, known := versions[os.Getenv("VERSION")]
	if !known {
		panic("VERSION " + os.Getenv("VERSION"))
	}
	made.Version = version
	made.Consumer.Offsets.Initial = sarama.OffsetOldest
	made.Consumer.Return.Errors = true
	made.Producer.RequiredAcks = sarama.WaitForAll
	made.Producer.Return.Successes = true
	made.Producer.Partitioner = sarama.NewManualPartitioner
	made.Producer.Flush.Frequency = 50 * time.Millisecond
	return made
}

func main() {
	addresses, args := []string{os.Args[2]}, os.Args[3:]
	switch os.Args[1] {
	case "write":
		for _, codec := range strings.Split(args[1], ",") {
			write(addresses, args[0], codec, number(args[2]))
		}
	case "read":
		read(addresses, args[0], number(args[1]))
	case "ends":
		client := must(sarama.NewClient(addresses, config()))
		fmt.Println(
			must(client.GetOffset(args[0], 0, sarama.OffsetOldest)),
			must(client.GetOffset(args[0], 0, sarama.OffsetNewest)),
		)
	case "offsets":
		offsets(addresses, args[1], args[0], number(args[2]))
	case "member":
		member(addresses, args[1], args[0], number(args[2]))
	case "admin":
		administer(addresses, args[0])
	default:
		panic(os.Args[1])
	}
}

func write(addresses []string, topic string, codec string, count int64) {
	chosen := config()
	chosen.Producer.Compression = codecs[codec]
	producer := must(sarama.NewSyncProducer(addresses, chosen))
	var messages []*sarama.ProducerMessage
	for n := int64(0); n < count; n++ {
		messages = append(messages, &sarama.ProducerMessage{
			Topic:     topic,
			Key:       sarama.StringEncoder(fmt.Sprintf("key %d", n)),
			Value:     sarama.StringEncoder(fmt.Sprintf("%s %d", codec, n)),
			Timestamp: time.Unix(1600000000, n*int64(time.Millisecond)),
		})
	}
	if failed, some := producer.SendMessages(messages).(sarama.ProducerErrors); some {
		panic(failed[0])
	}
	must(0, producer.Close())
}

func show(message *sarama.ConsumerMessage) {
	fmt.Printf("%d\t%s\t%s\n", message.Offset, message.Key, message.Value)
}

func read(addresses []string, topic string, count int64) {
	consumer := must(sarama.NewConsumer(addresses, config()))
	partition := must(consumer.ConsumePartition(topic, 0, sarama.OffsetOldest))
	for ; count > 0; count-- {
		select {
		case message := <-partition.Messages():
			show(message)
		case err := <-partition.Errors():
			panic(err)
		}
	}
}

func offsets(addresses []string, group string, topic string, offset int64) {
	client := must(sarama.NewClient(addresses, config()))
	for _, mark := range []int64{offset, -1} {
		manager := must(sarama.NewOffsetManagerFromClient(group, client))
		partition := must(manager.ManagePartition(topic, 0))
		if mark < 0 {
			next, _ := partition.NextOffset()
			fmt.Println(next)
		} else {
			partition.MarkOffset(mark, "")
		}
		must(0, partition.Close())
		must(0, manager.Close())
	}
}
