package main

import (
	"context"
	"fmt"

	"MODULE"
)

func init() {
	versions["2.0"] = sarama.V2_0_0_0
}

type handler struct {
	left *int64
	done func()
}

func (h handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (h handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (h handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		show(message)
		session.MarkMessage(message, "")
		if *h.left--; *h.left == 0 {
			h.done()
			return nil
		}
	}
	return nil
}

func member(addresses []string, name string, topic string, count int64) {
	chosen := config()
	if !chosen.Version.IsAtLeast(sarama.V0_10_2_0) {
		chosen.Version = sarama.V0_10_2_0
	}
	group := must(sarama.NewConsumerGroup(addresses, name, chosen))
	ctx, stop := context.WithCancel(context.Background())
	for ctx.Err() == nil {
		must(0, group.Consume(ctx, []string{topic}, handler{&count, stop}))
	}
	must(0, group.Close())
}

func administer(addresses []string, topic string) {
	admin := must(sarama.NewClusterAdmin(addresses, config()))
	must(0, admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 2, ReplicationFactor: 1}, false))
	must(0, admin.DeleteTopic(topic))
	must(0, admin.Close())
	fmt.Println("done")
}
