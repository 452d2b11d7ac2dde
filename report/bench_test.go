package report

import (
	"encoding/json"
	"testing"

	"sublet/plan"
)

// What a sample costs on its way: made by its part, encoded by the agent, read
// by the server. A virtual link between two hosts has two on each, and one of
// its tunnel.
func BenchmarkSample(b *testing.B) {
	traffic := Traffic{Link: "a-b", First: true, Packets: 7e6, Bytes: 7e9, Drops: map[string]uint64{"queue": 3}}
	link := plan.VxLink{Lease: alice, Index: 3}
	b.Run("make", func(b *testing.B) {
		for b.Loop() {
			traffic.Sample(link)
		}
	})
	s := traffic.Sample(link)
	text, err := json.Marshal(s)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			if _, err := json.Marshal(s); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			var s Sample
			if err := json.Unmarshal(text, &s); err != nil {
				b.Fatal(err)
			}
		}
	})
}
