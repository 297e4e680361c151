// segmentio's kafka-go at work, which only reads; programs.py describes the action and what it prints.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func text(data []byte) string {
	if data == nil {
		return "null"
	}
	return string(data)
}

func main() {
	if os.Args[1] != "read" {
		panic(os.Args[1])
	}
	ctx, stop := context.WithTimeout(context.Background(), 150*time.Second)
	defer stop()
	for at := 3; at < len(os.Args); at += 2 {
		read(ctx, os.Args[2], os.Args[at], must(strconv.Atoi(os.Args[at+1])))
	}
}

func read(ctx context.Context, address string, topic string, count int) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{address},
		Topic:   topic,
		MaxWait: 200 * time.Millisecond,
		ErrorLogger: kafka.LoggerFunc(func(format string, args ...interface{}) {
			fmt.Fprintf(os.Stderr, format+"\n", args...)
		}),
	})
	for ; count > 0; count-- {
		message := must(reader.ReadMessage(ctx))
		var headers []string
		for _, header := range message.Headers {
			headers = append(headers, header.Key+"="+string(header.Value)) // empty ones are nil
		}
		when := int64(-1)
		if !message.Time.IsZero() {
			when = message.Time.UnixMilli()
		}
		fmt.Printf("%s\t%d\t%d\t%s\t%s\t%s\n", message.Topic, message.Offset, when,
			text(message.Key), text(message.Value), strings.Join(headers, ","))
	}
	reader.Close()
}
