package server

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
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
		text, err := list[0].encode(mostEncoded)
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
	if _, err := list[0].encode(mostEncoded); err == nil {
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
	if err := host.take("h1", report.Packed{Era: 3, Heads: all}, 0); err != nil {
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
			text, err := list[0].encode(mostEncoded)
			if err != nil {
				b.Fatal(err)
			}
			f.samples(text)
			text.free()
		}
	}
}

// A hostile agent's short form stands for no more than the server has room for: one
// head that a million samples repeat, heads without an end, and instants of no year.
func TestHostileAgentsSamplesAreBounded(t *testing.T) {
	round := func(samples int, body []byte) report.PackedRound {
		return report.PackedRound{Number: 1, At: time.Unix(9, 0).UTC(), Samples: samples, Bytes: len(body), Body: body}
	}
	said := func(p report.Packed) error {
		list, err := decodeReadings("h1", new(heads), p.Encode())
		for _, one := range list {
			if err == nil {
				_, err = one.encode(mostEncoded)
			}
		}
		return err
	}
	const many = 1 << 16
	bomb := bytes.Repeat([]byte{1, 0}, many) // of head 0 over and over: one step of -1 from the one before
	bomb[0] = 0
	long := []report.Sample{{Key: strings.Repeat("k", 1<<20)}}
	for what, p := range map[string]report.Packed{
		"more than 64 MiB as JSON": {Era: 1, Heads: long, Rounds: []report.PackedRound{round(many, bomb)}},
		"1048577 samples":          {Era: 1, Heads: []report.Sample{{}}, Rounds: []report.PackedRound{round(mostSamples+1, make([]byte, 2*mostSamples+2))}},
		"of the year 10292":        {Era: 1, Heads: []report.Sample{{}}, Rounds: []report.PackedRound{{At: time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC), Samples: 1, Bytes: 11, Body: binary.AppendVarint([]byte{0}, math.MaxInt64)}}},
		"ends in number 1":         {Era: 1, Heads: []report.Sample{{}}, Rounds: []report.PackedRound{round(2, []byte{0, 0})}},
		"are of no use":            {Era: 1, From: 3, Heads: []report.Sample{{}}},
	} {
		if err := said(p); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	h, taken := new(heads), 0
	for ; taken < 100; taken++ {
		p := report.Packed{Era: 1, From: len(h.list), Heads: []report.Sample{{Lease: vnet.LeaseID{Tenant: vnet.TenantID(strings.Repeat("t", 4<<20))}}}}
		if _, err := decodeReadings("h1", h, p.Encode()); err != nil {
			break
		}
	}
	if taken < 2 || taken > 20 {
		t.Errorf("%d times heads of 4 MiB were kept", taken)
	}
}
