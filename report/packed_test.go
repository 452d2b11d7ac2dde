package report

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"sublet/plan"
	"sublet/vnet"
)

// someSamples are of two tenants and of the host, with and without each field.
func someSamples(round int, at time.Time) []Sample {
	list := []Sample{
		{Kind: "vxlink", Key: "alice.net#0001", Lease: alice, At: at, Labels: map[string]string{LabelLink: "a-b", LabelDirection: "0"}},
		{Kind: "vxlink", Key: "alice.net#0001", Lease: alice, At: at, Labels: map[string]string{LabelLink: "a-b", LabelDirection: "1"}},
		{Host: "h1", Kind: "reach", Key: `b"<&>` + "\n\u2028ä", Lease: bob, At: at.Add(time.Millisecond), State: Unreached, Why: `why "<>"`},
		{Kind: "overlay", At: at.Add(-time.Second), State: TunnelNone},
		{Kind: "spread", Key: "k", Lease: bob, At: at, Why: fmt.Sprint("round ", round/2)},
	}
	list[0].Count(Entered, Packets, uint64(round))
	list[0].Count(Entered, Bytes, 1<<63+uint64(round))
	list[1].Count(Entered, Packets, 0)
	list[3].CountBy(Dropped, map[string]uint64{"unknown": 7, "port": uint64(round)})
	list[4].Gauge("weight", None, 3)
	return list
}

// Rounds that go over the wire in the short form are what they were, while heads
// come and go, for who asked before and for who did not; heads go over once.
func TestPackedRounds(t *testing.T) {
	heads := NewHeads(5)
	var known []Sample
	size := 0
	for n := range 8 {
		at := time.Date(2026, 11, 23, 8, 0, n, 5e8, time.UTC)
		want := Round{Number: uint64(n + 1), At: at.Add(-time.Microsecond), Samples: someSamples(n, at)}
		if n == 5 { // a thing goes, others move up
			want.Samples = want.Samples[1:]
		}
		packed := heads.Pack(want)
		for _, have := range [][]Sample{known, nil} {
			list, from := heads.Since(5, len(have))
			text := Packed{Era: 5, From: from, Heads: list, Rounds: []PackedRound{packed}}.Encode()
			got, err := DecodePacked(text)
			if err != nil {
				t.Fatal(err)
			}
			if known, err = got.After(5, have); err != nil {
				t.Fatal(err)
			}
			round, err := got.Rounds[0].Unpack(known)
			if err != nil || !sameText(t, round, want) {
				t.Errorf("round %d became\n%+v, want\n%+v, %v", n, round, want, err)
			}
			for _, of := range []Scope{{Tenant: "alice"}, {Tenant: "bob"}, {Tenant: "carol"}} {
				some, err := got.Rounds[0].Only(of, known).Unpack(known)
				if whole := want; err != nil || !sameText(t, some.Samples, of.Filter(whole.Samples)) {
					t.Errorf("of %v round %d has %+v, %v", of, n, some, err)
				}
			}
			if have != nil {
				size = len(text)
			}
		}
	}
	if size > 300 || len(known) != 9 {
		t.Errorf("%d bytes go over for five samples, there are %d heads", size, len(known))
	}
}

func sameText(t *testing.T, a, b any) bool {
	t.Helper()
	return string(jsonOf(t, a)) == string(jsonOf(t, b))
}

func jsonOf(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The JSON made of pieces is that of the standard library.
func TestTextsAreTheJSONOfSamples(t *testing.T) {
	for n, at := range []time.Time{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Now(), time.Now().UTC()} {
		for _, s := range someSamples(n, at) {
			head := s.head()
			var figures []uint64
			for _, c := range s.Counters {
				figures = append(figures, c.Value)
			}
			if got, want := head.Text().Append(nil, AppendInstant(nil, s.At), figures), jsonOf(t, s); string(got) != string(want) {
				t.Errorf("%s\nis not\n%s", got, want)
			}
		}
	}
}

// What does not go together is refused: agents are not trusted.
func TestPackedRoundsThatAreWrong(t *testing.T) {
	heads := NewHeads(1)
	good := heads.Pack(Round{Samples: someSamples(300, time.Now())})
	list, _ := heads.Since(0, 0)
	bad := func(change func(*PackedRound)) (p PackedRound) {
		p = good
		change(&p)
		return p
	}
	for name, p := range map[string]PackedRound{
		"shorter":        bad(func(p *PackedRound) { p.Body = p.Body[:len(p.Body)-1] }),
		"longer":         bad(func(p *PackedRound) { p.Body = append(p.Body[:len(p.Body):len(p.Body)], 1) }),
		"more samples":   bad(func(p *PackedRound) { p.Samples++ }),
		"fewer samples":  bad(func(p *PackedRound) { p.Samples-- }),
		"no such head":   bad(func(p *PackedRound) { p.Body = []byte{20, 0}; p.Samples = 1 }),
		"a head below 0": bad(func(p *PackedRound) { p.Body = []byte{1, 0}; p.Samples = 1 }),
	} {
		if _, err := p.Unpack(list); err == nil {
			t.Errorf("%s: is taken", name)
		}
	}
	for name, text := range map[string]string{
		"no packed rounds": "[1]\n", "fewer bytes": `{"rounds":[{"bytes":2}]}` + "\nx", "more bytes": `{"rounds":[{"bytes":1}]}` + "\nxx",
		"samples": `{"rounds":[{"bytes":1,"samples":2}]}` + "\nx", "below 0": `{"rounds":[{"bytes":-1}]}` + "\n",
	} {
		if _, err := DecodePacked([]byte(text)); err == nil {
			t.Errorf("%s: is taken", name)
		}
	}
	for _, p := range []Packed{{Era: 1, From: 2}, {Era: 2, From: 1}} {
		if got, err := p.After(1, list[:1]); err == nil {
			t.Errorf("%+v after one head is %+v", p, got)
		}
	}
}

// Heads of what is gone wear an era; equal rounds never do, though two heads have
// one hash.
func TestHeadsWear(t *testing.T) {
	heads := NewHeads(1)
	for n := range 10000 {
		heads.Pack(Round{Samples: someSamples(0, time.Time{}.Add(time.Duration(n)))})
	}
	if heads.Worn() || len(heads.list) != 5 {
		t.Fatalf("of five things there are %d heads", len(heads.list))
	}
	for n := 0; !heads.Worn(); n++ {
		if n > 10000 {
			t.Fatal("heads grow without a bound")
		}
		heads.Pack(Round{Samples: []Sample{{Key: fmt.Sprint(n), Lease: vnet.LeaseID{}}}})
	}
	if h := NewHeads(1); !reflect.DeepEqual(h.Pack(Round{}).Body, []byte{}) || h.Worn() {
		t.Error("nothing wears heads")
	}
}

func BenchmarkPacked(b *testing.B) {
	const n = 3000
	samples := make([]Sample, n)
	for i := range samples {
		t := Traffic{Link: fmt.Sprint("l", i/2), Direction: vnet.Direction(i % 2), Packets: 7e6, Bytes: 7e9, Drops: map[string]uint64{"queue": 3}}
		samples[i] = t.Sample(plan.VxLink{Lease: alice, Index: i / 2})
	}
	heads := NewHeads(1)
	p := heads.Pack(Round{Samples: samples})
	list, _ := heads.Since(0, 0)
	texts := make([]Text, n)
	for i := range list {
		texts[i] = list[i].Text()
	}
	b.Run("pack", func(b *testing.B) {
		for b.Loop() {
			heads.Pack(Round{Samples: samples})
		}
	})
	b.Run("text", func(b *testing.B) {
		var to []byte
		for b.Loop() {
			to = to[:0]
			_ = p.Each(list, func(head int, at time.Time, figures []uint64) {
				to = texts[head].Append(to, AppendInstant(nil, at), figures)
			})
		}
	})
}
