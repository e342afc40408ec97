// A producer with acks=all; it prints each record that was acknowledged, one a line.
//
//	goclient -client CLIENT -bootstrap HOST:PORT,... -topic TOPIC [-count N] [-rate N] [-release 0.10|2.0|2.4]
//
// CLIENT is franz-go, franz-go-idempotent or sarama. It sends TOPIC-1 to TOPIC-count, rate of them a second, without
// waiting for answers, and fewer when its standard input ends earlier. A record that is refused is named on standard
// error. It ends when every record was answered.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The time a record may take, whatever happens to brokers.
const patience = 60 * time.Second

// The release that sarama is told of: it does not ask brokers for the versions of their requests.
var releases = map[string]sarama.KafkaVersion{"0.10": sarama.V0_10_2_0, "2.0": sarama.V2_0_0_0, "2.4": sarama.V2_4_0_0}

// Hands a number over to be produced; its outcome comes later.
type send func(value int)

// The records that were acknowledged, written to standard output; waiting counts those without an answer.
type outcomes struct {
	mutex   sync.Mutex
	out     *bufio.Writer
	waiting sync.WaitGroup
}

func (o *outcomes) answered(value string, err error) {
	defer o.waiting.Done()
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", value, err)
		return
	}
	fmt.Fprintln(o.out, value)
	o.out.Flush()
}

func main() {
	client := flag.String("client", "franz-go", "franz-go, franz-go-idempotent or sarama")
	bootstrap := flag.String("bootstrap", "127.0.0.1:9092", "addresses of brokers, with commas between them")
	topic := flag.String("topic", "orders", "the topic to write to")
	count := flag.Int("count", 1000, "how many records")
	rate := flag.Int("rate", 100, "records a second")
	release := flag.String("release", "2.0", "the brokers' generation: 0.10, 2.0 or 2.4")
	flag.Parse()

	found := &outcomes{out: bufio.NewWriter(os.Stdout)}
	servers := strings.Split(*bootstrap, ",")
	var produce send
	var end func()
	switch *client {
	case "franz-go":
		produce, end = franzGo(servers, *topic, found, kgo.DisableIdempotentWrite(),
			kgo.MaxProduceRequestsInflightPerBroker(1))
	case "franz-go-idempotent":
		produce, end = franzGo(servers, *topic, found)
	case "sarama":
		produce, end = saramaAsync(servers, *topic, *release, found)
	default:
		fail("client %s: franz-go, franz-go-idempotent or sarama", *client)
	}
	stopped := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(stopped)
	}()
	tick := time.NewTicker(time.Second / time.Duration(*rate))
sending:
	for value := 1; value <= *count; value++ {
		found.waiting.Add(1)
		produce(value)
		select {
		case <-tick.C:
		case <-stopped:
			break sending
		}
	}
	found.waiting.Wait()
	end()
}

// A record says whose it is.
func text(topic string, value int) string {
	return topic + "-" + strconv.Itoa(value)
}

func fail(format string, arguments ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
	os.Exit(2)
}

func franzGo(servers []string, topic string, found *outcomes, more ...kgo.Opt) (send, func()) {
	options := []kgo.Opt{
		kgo.SeedBrokers(servers...),
		kgo.DefaultProduceTopic(topic),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordDeliveryTimeout(patience),
		kgo.RecordRetries(1000),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}
	client, err := kgo.NewClient(append(options, more...)...)
	if err != nil {
		fail("franz-go: %v", err)
	}
	produce := func(value int) {
		record := kgo.StringRecord(text(topic, value))
		client.Produce(context.Background(), record, func(sent *kgo.Record, err error) {
			found.answered(string(sent.Value), err)
		})
	}
	return produce, client.Close
}

func saramaAsync(servers []string, topic string, release string, found *outcomes) (send, func()) {
	config := sarama.NewConfig()
	version, known := releases[release]
	if !known {
		fail("release %s: 0.10, 2.0 or 2.4", release)
	}
	config.Version = version
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Producer.Retry.Max = int(patience / (100 * time.Millisecond))
	config.Producer.Retry.Backoff = 100 * time.Millisecond
	config.Net.MaxOpenRequests = 1
	producer, err := sarama.NewAsyncProducer(servers, config)
	if err != nil {
		fail("sarama: %v", err)
	}
	sent := func(message *sarama.ProducerMessage) string {
		value, _ := message.Value.Encode()
		return string(value)
	}
	go func() {
		for message := range producer.Successes() {
			found.answered(sent(message), nil)
		}
	}()
	go func() {
		for refused := range producer.Errors() {
			found.answered(sent(refused.Msg), refused.Err)
		}
	}()
	produce := func(value int) {
		producer.Input() <- &sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(text(topic, value))}
	}
	return produce, func() { _ = producer.Close() }
}
