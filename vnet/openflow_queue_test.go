package vnet_test

import (
	"strings"
	"testing"

	"sublet/vnet/file"
)

// Queues promise no more than their links have.
func TestQueuesOfOpenFlowSwitches(t *testing.T) {
	request := func(queues, rate string) error {
		_, err := file.ParseRequest("f", []byte(`network: n
nodes: [{name: a}, {name: ctl}]
switches: [{name: s, kind: openflow, controller: ["tcp:ctl:6653"], queues: [`+queues+`]}]
links: [{name: c, ends: [s, ctl], control: true}, {name: l, ends: [s, a], `+rate+`}]
`))
		return err
	}
	for _, c := range []struct{ queues, rate, want string }{
		{"{link: l, queue: 1, min: 2Mbit, max: 5Mbit}, {link: l, queue: 2, min: 8Mbit}", "rate: 10Mbit", ""},
		{"{link: l, queue: 1, min: 2Mbit}, {link: l, queue: 2, min: 9Mbit}", "rate: 10Mbit", "promise 11Mbit, more than the 10Mbit"},
		{"{link: l, queue: 1, max: 11Mbit}", "rate: 10Mbit", "11Mbit is more than the 10Mbit"},
		{"{link: l, queue: 1, min: 3Mbit, max: 2Mbit}", "rate: 10Mbit", "is more than its max"},
		{"{link: l, queue: 1, min: 8Mbit}", "rate: 10Mbit, reverse: {rate: 5Mbit}", ""},
		{"{link: l, queue: 1, min: 8Mbit}", "rate: 5Mbit, reverse: {rate: 10Mbit}", "promise 8Mbit, more than the 5Mbit"},
		{"{link: l, queue: 64}", "rate: 10Mbit", "not between 0 and 63"},
		{"{link: l, queue: 1}, {link: l, queue: 1}", "rate: 10Mbit", "is there already"},
		{"{link: c, queue: 1}", "rate: 10Mbit", "to the controller"},
		{"{link: x, queue: 1}", "rate: 10Mbit", "x"},
		{"{link: l, queue: 1}", "latency: 10ms", "has no rate"},
	} {
		err := request(c.queues, c.rate)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.queues, c.rate, err, c.want)
		}
	}
}
