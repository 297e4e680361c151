// franz-go at work; programs.py describes the actions and what they print.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const firstTime = 1_600_000_000_000

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
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
	address, rest := os.Args[2], os.Args[3:]
	ctx, stop := context.WithTimeout(context.Background(), 150*time.Second)
	defer stop()
	switch os.Args[1] {
	case "write":
		write(ctx, address, rest)
	case "read":
		read(ctx, address, rest, kgo.ReadUncommitted())
	case "committed":
		read(ctx, address, rest, kgo.ReadCommitted())
	case "transactions":
		transactions(ctx, address, rest)
	case "times":
		times(ctx, address, rest)
	case "member":
		member(ctx, address, rest)
	case "send":
		send(address, rest)
	case "admin":
		administer(ctx, address, rest[0])
	default:
		panic(os.Args[1])
	}
}

func client(address string, options ...kgo.Opt) *kgo.Client {
	return must(kgo.NewClient(append(options, kgo.SeedBrokers(strings.Split(address, ",")...))...))
}

func write(ctx context.Context, address string, args []string) {
	for _, codec := range strings.Split(args[1], ",") {
		options := []kgo.Opt{
			kgo.ProducerBatchCompression(codecs[codec]),
			kgo.ProducerLinger(50 * time.Millisecond),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
		}
		if args[3] != "true" {
			options = append(options, kgo.DisableIdempotentWrite(), kgo.MaxProduceRequestsInflightPerBroker(1))
		}
		producer := client(address, options...)
		var records []*kgo.Record
		for n := int64(0); n < number(args[2]); n++ {
			records = append(records, &kgo.Record{
				Topic:     args[0],
				Key:       []byte(fmt.Sprintf("key %d", n)),
				Value:     []byte(fmt.Sprintf("%s %d", codec, n)),
				Timestamp: time.UnixMilli(firstTime + n),
				Headers:   []kgo.RecordHeader{{Key: "codec", Value: []byte(codec)}, {Key: "empty", Value: []byte{}}},
			})
		}
		for _, result := range producer.ProduceSync(ctx, records...) {
			fmt.Println(must(result.Record, result.Err).Offset)
		}
		producer.Close()
	}
}

// Ends with standard input, whatever the time.
func send(address string, args []string) {
	producer := client(address,
		kgo.ProducerBatchCompression(codecs[args[2]]),
		kgo.ProducerLinger(2*time.Millisecond),
		kgo.ProduceRequestTimeout(time.Duration(number(args[3]))*time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	lines := bufio.NewScanner(os.Stdin)
	for count := 0; lines.Scan(); count++ {
		sequence, words := count, strings.Fields(lines.Text())
		record := &kgo.Record{Topic: args[0], Partition: int32(number(args[1])), Value: must(hex.DecodeString(words[0]))}
		if len(words) > 1 {
			header := kgo.RecordHeader{Key: "header", Value: must(hex.DecodeString(words[1]))}
			record.Headers = append(record.Headers, header)
		}
		producer.Produce(context.Background(), record, func(stored *kgo.Record, err error) {
			if err != nil {
				fmt.Println(sequence, -1, err)
			} else {
				fmt.Println(sequence, stored.Offset)
			}
		})
	}
	must(0, producer.Flush(context.Background()))
	producer.Close()
}

func text(data []byte) string {
	if data == nil {
		return "null"
	}
	return string(data)
}

func transactions(ctx context.Context, address string, args []string) {
	producer := client(address,
		kgo.TransactionalID(args[0]),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	defer producer.Close()
	id, epoch := int64(0), int16(0)
	for n := int64(0); n < number(args[3]); n++ {
		must(0, producer.BeginTransaction())
		record := &kgo.Record{Topic: args[1], Value: []byte(fmt.Sprintf("%s %d", args[0], n))}
		must(0, producer.ProduceSync(ctx, record).FirstErr())
		var err error
		if id, epoch, err = producer.ProducerID(ctx); err != nil {
			panic(err)
		}
		offsets(ctx, producer, args, id, epoch, n+1)
		must(0, producer.EndTransaction(ctx, kgo.TransactionEndTry(n%3 != 2)))
	}
	fmt.Println("done")
}

// By requests: the client itself commits what a member of the group has read.
func offsets(ctx context.Context, producer *kgo.Client, args []string, id int64, epoch int16, offset int64) {
	add := kmsg.NewAddOffsetsToTxnRequest()
	add.TransactionalID, add.ProducerID, add.ProducerEpoch, add.Group = args[0], id, epoch, args[2]
	if code := must(add.RequestWith(ctx, producer)).ErrorCode; code != 0 {
		panic(kerr.ErrorForCode(code))
	}
	partition := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	partition.Offset = offset
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	topic.Topic = args[1]
	topic.Partitions = append(topic.Partitions, partition)
	commit := kmsg.NewTxnOffsetCommitRequest()
	commit.TransactionalID, commit.Group, commit.ProducerID, commit.ProducerEpoch = args[0], args[2], id, epoch
	commit.Generation = -1
	commit.Topics = append(commit.Topics, topic)
	for _, topic := range must(commit.RequestWith(ctx, producer)).Topics {
		if code := topic.Partitions[0].ErrorCode; code != 0 {
			panic(kerr.ErrorForCode(code))
		}
	}
}

func read(ctx context.Context, address string, args []string, isolation kgo.IsolationLevel) {
	for at := 0; at < len(args); at += 2 {
		begin := map[string]map[int32]kgo.Offset{args[at]: {0: kgo.NewOffset().AtStart()}}
		consumer := client(address, kgo.ConsumePartitions(begin), kgo.FetchIsolationLevel(isolation))
		for left := number(args[at+1]); left > 0; {
			fetches := consumer.PollFetches(ctx)
			if errors := fetches.Errors(); len(errors) > 0 {
				panic(errors[0].Err)
			}
			fetches.EachRecord(func(r *kgo.Record) {
				var headers []string
				for _, header := range r.Headers {
					headers = append(headers, header.Key+"="+text(header.Value))
				}
				when := int64(-1)
				if !r.Timestamp.IsZero() {
					when = r.Timestamp.UnixMilli()
				}
				fmt.Printf("%s\t%d\t%d\t%s\t%s\t%s\n", r.Topic, r.Offset, when,
					text(r.Key), text(r.Value), strings.Join(headers, ","))
				left--
			})
		}
		consumer.Close()
	}
}

func times(ctx context.Context, address string, args []string) {
	base := client(address)
	defer base.Close()
	admin := kadm.NewClient(base)
	show := func(found kadm.ListedOffsets, err error) {
		listed, _ := must(found, err).Lookup(args[0], 0)
		fmt.Println(must(listed.Offset, listed.Err))
	}
	show(admin.ListStartOffsets(ctx, args[0]))
	show(admin.ListEndOffsets(ctx, args[0]))
	for _, asked := range args[1:] {
		found := must(admin.ListOffsetsAfterMilli(ctx, number(asked), args[0]))
		listed, _ := found.Lookup(args[0], 0)
		if listed.Timestamp == -1 { // kadm gives the end instead of "none"
			listed.Offset = -1
		}
		fmt.Println(must(listed.Offset, listed.Err))
	}
}

func member(ctx context.Context, address string, args []string) {
	var lock sync.Mutex
	owned := map[int32]bool{}
	show := func(word string, changed map[string][]int32, owns bool) {
		lock.Lock()
		defer lock.Unlock()
		for _, partition := range changed[args[1]] {
			if owns {
				owned[partition] = true
			} else {
				delete(owned, partition)
			}
		}
		var names []string
		for partition := range owned {
			names = append(names, fmt.Sprint(partition))
		}
		sort.Strings(names)
		if word == "revoked" {
			fmt.Println(word, len(changed[args[1]]))
		} else {
			fmt.Println(word, strings.Join(names, ","))
		}
	}
	options := []kgo.Opt{
		kgo.ConsumerGroup(args[0]),
		kgo.ConsumeTopics(args[1]),
		kgo.Balancers(kgo.RangeBalancer()),
		kgo.SessionTimeout(6 * time.Second),
		kgo.HeartbeatInterval(time.Second),
		kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
			show("assigned", changed, true)
		}),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, changed map[string][]int32) {
			show("revoked", changed, false)
		}),
	}
	consumer := client(address, options...)
	ctx, stop := context.WithCancel(ctx)
	go func() {
		io.ReadAll(os.Stdin)
		stop()
	}()
	for ctx.Err() == nil {
		fetches := consumer.PollFetches(ctx)
		fetches.EachRecord(func(r *kgo.Record) {
			fmt.Println("message", r.Partition, r.Offset)
		})
		if fetches.NumRecords() > 0 {
			if err := consumer.CommitUncommittedOffsets(ctx); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}
	consumer.Close()
	fmt.Println("closed")
}

func administer(ctx context.Context, address string, topic string) {
	base := client(address)
	defer base.Close()
	admin := kadm.NewClient(base)
	listed := func() { // a client of its own: they keep what they have heard for a while
		fresh := client(address)
		defer fresh.Close()
		fmt.Println("listed", must(kadm.NewClient(fresh).ListTopics(ctx)).Has(topic))
	}
	must(admin.CreateTopic(ctx, 2, 1, nil, topic))
	listed()
	value := "123456"
	change := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: &value}}
	for _, each := range must(admin.AlterTopicConfigs(ctx, change, topic)) {
		must(0, each.Err)
	}
	for _, each := range must(admin.DescribeTopicConfigs(ctx, topic)) {
		for _, config := range each.Configs {
			if config.Key == "retention.ms" {
				fmt.Println("retention", config.MaybeValue())
			}
		}
	}
	for _, each := range must(admin.UpdatePartitions(ctx, 3, topic)) {
		must(0, each.Err)
	}
	fmt.Println("partitions", len(must(admin.ListTopics(ctx, topic))[topic].Partitions))
	must(admin.DeleteTopic(ctx, topic))
	listed()
}
