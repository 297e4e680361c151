// sarama at work; programs.py describes the actions and what they print.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

const firstTime = 1_600_000_000_000

var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
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
	if version := os.Getenv("VERSION"); version != "" {
		made.Version = must(sarama.ParseKafkaVersion(version))
	}
	made.Consumer.Offsets.Initial = sarama.OffsetOldest
	made.Consumer.Offsets.AutoCommit.Enable = false
	made.Consumer.Group.Session.Timeout = 6 * time.Second
	made.Consumer.Group.Heartbeat.Interval = time.Second
	made.Producer.RequiredAcks = sarama.WaitForAll
	made.Producer.Return.Successes = true
	made.Producer.Partitioner = sarama.NewManualPartitioner
	made.Producer.Flush.Frequency = 50 * time.Millisecond
	return made
}

func main() {
	addresses, rest := []string{os.Args[2]}, os.Args[3:]
	switch os.Args[1] {
	case "write":
		write(addresses, rest)
	case "read":
		read(addresses, rest, sarama.ReadUncommitted)
	case "committed":
		read(addresses, rest, sarama.ReadCommitted)
	case "transactions":
		transactions(addresses, rest)
	case "times":
		times(addresses, rest)
	case "member":
		member(addresses, rest)
	case "admin":
		administer(addresses, rest[0])
	default:
		panic(os.Args[1])
	}
}

func write(addresses []string, args []string) {
	for _, codec := range strings.Split(args[1], ",") {
		chosen := config()
		chosen.Producer.Compression = codecs[codec]
		chosen.Producer.Idempotent = args[3] == "true"
		chosen.Net.MaxOpenRequests = 1
		producer := must(sarama.NewSyncProducer(addresses, chosen))
		var messages []*sarama.ProducerMessage
		for n := int64(0); n < number(args[2]); n++ {
			message := &sarama.ProducerMessage{
				Topic:     args[0],
				Key:       sarama.StringEncoder(fmt.Sprintf("key %d", n)),
				Value:     sarama.StringEncoder(fmt.Sprintf("%s %d", codec, n)),
				Timestamp: time.UnixMilli(firstTime + n),
			}
			if chosen.Version.IsAtLeast(sarama.V0_11_0_0) {
				message.Headers = []sarama.RecordHeader{
					{Key: []byte("codec"), Value: []byte(codec)}, {Key: []byte("empty"), Value: []byte{}},
				}
			}
			messages = append(messages, message)
		}
		if failed, some := producer.SendMessages(messages).(sarama.ProducerErrors); some {
			panic(failed[0])
		}
		for _, message := range messages {
			fmt.Println(message.Offset)
		}
		must(0, producer.Close())
	}
}

func text(data []byte) string {
	if data == nil {
		return "null"
	}
	return string(data)
}

func transactions(addresses []string, args []string) {
	chosen := config()
	chosen.Producer.Idempotent = true
	chosen.Producer.Transaction.ID = args[0]
	chosen.Net.MaxOpenRequests = 1
	producer := must(sarama.NewSyncProducer(addresses, chosen))
	for n := int64(0); n < number(args[3]); n++ {
		must(0, producer.BeginTxn())
		value := sarama.StringEncoder(fmt.Sprintf("%s %d", args[0], n))
		must(0, producer.SendMessages([]*sarama.ProducerMessage{{Topic: args[1], Value: value}}))
		offset := &sarama.PartitionOffsetMetadata{Partition: 0, Offset: n + 1}
		offsets := map[string][]*sarama.PartitionOffsetMetadata{args[1]: {offset}}
		must(0, producer.AddOffsetsToTxn(offsets, args[2]))
		if n%3 == 2 {
			must(0, producer.AbortTxn())
		} else {
			must(0, producer.CommitTxn())
		}
	}
	must(0, producer.Close())
	fmt.Println("done")
}

func read(addresses []string, args []string, isolation sarama.IsolationLevel) {
	chosen := config()
	chosen.Consumer.IsolationLevel = isolation
	consumer := must(sarama.NewConsumer(addresses, chosen))
	for at := 0; at < len(args); at += 2 {
		partition := must(consumer.ConsumePartition(args[at], 0, sarama.OffsetOldest))
		for left := number(args[at+1]); left > 0; left-- {
			m := <-partition.Messages()
			var headers []string
			for _, header := range m.Headers {
				headers = append(headers, string(header.Key)+"="+text(header.Value))
			}
			when := int64(-1)
			if !m.Timestamp.IsZero() {
				when = m.Timestamp.UnixMilli()
			}
			fmt.Printf("%s\t%d\t%d\t%s\t%s\t%s\n", m.Topic, m.Offset, when, text(m.Key), text(m.Value),
				strings.Join(headers, ","))
		}
		must(0, partition.Close())
	}
	must(0, consumer.Close())
}

func times(addresses []string, args []string) {
	client := must(sarama.NewClient(addresses, config()))
	show := func(when int64) { fmt.Println(must(client.GetOffset(args[0], 0, when))) }
	show(sarama.OffsetOldest)
	show(sarama.OffsetNewest)
	for _, asked := range args[1:] {
		show(number(asked))
	}
	must(0, client.Close())
}

type handler struct{ topic string }

func (h handler) Setup(session sarama.ConsumerGroupSession) error {
	var names []string
	for _, partition := range session.Claims()[h.topic] {
		names = append(names, fmt.Sprint(partition))
	}
	sort.Strings(names)
	fmt.Println("assigned", strings.Join(names, ","))
	return nil
}

func (h handler) Cleanup(session sarama.ConsumerGroupSession) error {
	fmt.Println("revoked", len(session.Claims()[h.topic]))
	return nil
}

func (h handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		fmt.Println("message", message.Partition, message.Offset)
		session.MarkMessage(message, "")
		session.Commit()
	}
	return nil
}

func member(addresses []string, args []string) {
	group := must(sarama.NewConsumerGroup(addresses, args[0], config()))
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		io.ReadAll(os.Stdin)
		stop()
	}()
	for ctx.Err() == nil {
		if err := group.Consume(ctx, []string{args[1]}, handler{args[1]}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	must(0, group.Close())
	fmt.Println("closed")
}

func administer(addresses []string, topic string) {
	admin := must(sarama.NewClusterAdmin(addresses, config()))
	listed := func() {
		_, found := must(admin.ListTopics())[topic]
		fmt.Println("listed", found)
	}
	must(0, admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1}, false))
	listed()
	value := "123456"
	must(0, admin.AlterConfig(sarama.TopicResource, topic, map[string]*string{"retention.ms": &value}, false))
	resource := sarama.ConfigResource{Type: sarama.TopicResource, Name: topic}
	for _, entry := range must(admin.DescribeConfig(resource)) {
		if entry.Name == "retention.ms" {
			fmt.Println("retention", entry.Value)
		}
	}
	must(0, admin.CreatePartitions(topic, 3, nil, false))
	fmt.Println("partitions", len(must(admin.DescribeTopics([]string{topic}))[0].Partitions))
	must(0, admin.DeleteTopic(topic))
	listed()
	must(0, admin.Close())
}
