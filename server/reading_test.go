package server

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"sublet/plan"
	"sublet/report"
	"sublet/vnet"
)

// manySamples are of two tenants by turns.
func manySamples(n int) []report.Sample {
	list := make([]report.Sample, n)
	for i := range list {
		t := report.Traffic{Link: fmt.Sprint("l", i), First: true, Packets: 7e6, Bytes: 7e9}
		list[i] = t.Sample(plan.VxLink{Lease: vnet.LeaseID{Tenant: vnet.TenantID(fmt.Sprint("t", i%2)), Network: "n"}, Index: i})
		list[i].At = time.Unix(int64(i), 0).UTC()
	}
	return list
}

// What feeds are told of an agent's answer, in either form, is what the agent said,
// in lists of bounded size; each feed gets what is of its scope, of this host.
func TestReadingsAreWhatAgentsSaid(t *testing.T) {
	said := manySamples(1203)
	kept := report.NewHeads(3)
	packed := report.Packed{Era: 3, Rounds: []report.PackedRound{kept.Pack(report.Round{Number: 4, At: time.Unix(9, 0).UTC(), Samples: said})}}
	packed.Heads, packed.From = kept.Since(0, 0)
	plain, err := json.Marshal([]report.Round{{Number: 4, Samples: said}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range said {
		said[i].Host = "h1"
	}
	for form, body := range map[string][]byte{"packed": packed.Encode(), "plain": plain} {
		list, err := decodeReadings("h1", new(heads), body)
		if err != nil || len(list) != 1 || list[0].packed.Number != 4 {
			t.Fatalf("%s: %+v, %v", form, list, err)
		}
		if got, err := list[0].samples(); err != nil || !reflect.DeepEqual(got, said) {
			t.Errorf("%s: other samples, %v", form, err)
		}
		text, err := list[0].encode()
		if err != nil {
			t.Fatal(err)
		}
		for tenant, lists := range map[vnet.TenantID]int{"": 3, "t0": 2, "t1": 2, "t2": 0} {
			scope := report.Scope{Tenant: tenant}
			got, n := []report.Sample{}, 0
			text.of(scope).lists(samplesOfEvent, func(text []byte) {
				var some []report.Sample
				if err := json.Unmarshal(text, &some); err != nil || len(some) > samplesOfEvent {
					t.Errorf("%s: a list of %d, %v", form, len(some), err)
				}
				got, n = append(got, some...), n+1
			})
			if n != lists || !reflect.DeepEqual(got, append([]report.Sample{}, scope.Filter(said)...)) {
				t.Errorf("%s: %q is told %d samples in %d lists", form, tenant, len(got), n)
			}
		}
	}
}

// Answers that are none are refused.
func TestReadingsThatAreWrong(t *testing.T) {
	for _, body := range []string{"", "no samples", "[1]", `{"from":1}` + "\n", `{"rounds":[{"bytes":1}]}` + "\n"} {
		if list, err := decodeReadings("h1", new(heads), []byte(body)); err == nil {
			t.Errorf("%q is %+v", body, list)
		}
	}
	list, err := decodeReadings("h1", new(heads), []byte(`{"rounds":[{"bytes":2,"samples":1}]}`+"\n\x00\x00"))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if _, err := list[0].encode(); err == nil {
		t.Error("a sample without a head is taken")
	}
}

// What a second of two hosts with a thousand links costs the server: read, and made
// into events of everybody's feed.
func BenchmarkWatch(b *testing.B) {
	kept := report.NewHeads(3)
	round := report.Round{Number: 1, At: time.Unix(9, 0).UTC(), Samples: manySamples(3000)}
	kept.Pack(round)
	all, _ := kept.Since(0, 0)
	host := new(heads)
	if err := host.take("h1", report.Packed{Era: 3, Heads: all}); err != nil {
		b.Fatal(err)
	}
	body := report.Packed{Era: 3, From: len(all), Rounds: []report.PackedRound{kept.Pack(round)}}.Encode()
	f := newFeed(report.Scope{})
	b.ReportAllocs()
	for b.Loop() {
		for range 2 {
			list, err := decodeReadings("h1", host, body)
			if err != nil {
				b.Fatal(err)
			}
			text, err := list[0].encode()
			if err != nil {
				b.Fatal(err)
			}
			f.samples(text)
			text.free()
		}
	}
}
