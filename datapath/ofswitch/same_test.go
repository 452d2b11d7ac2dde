package ofswitch

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"sublet/openflow/of13"
)

var (
	samePackets = flag.Int("packets", 3000, "packets of TestSameAnswers")
	sameSeed    = flag.Uint64("seed", 1, "of TestSameAnswers: its packets and changes follow from it")
)

const (
	roundFrames  = 16 // different frames between two changes
	roundCopies  = 20 // of each
	roundChanges = 32
	clearAfter   = 12               // rounds after which tables begin anew
	cacheBehind  = 10 * time.Second // at most, of Open vSwitch; of others what the kernel has in its hands
)

// The reference model, both datapaths and Open vSwitch send the same frames, tell
// controllers the same and count the same: random tables, groups, changes, and
// entries that run out. Where the specification leaves a choice, or Open vSwitch
// differs from it, docs/openflow.md says so and nothing of that kind is drawn.
func TestSameAnswers(t *testing.T) {
	t.Parallel()
	if within(t) {
		sameAnswers(t, *samePackets, 0, false)
	}
}

const (
	soakPackets = 200_000
	soakTime    = 80 * time.Second // after which it is enough, but for entries that run out
	soakSize    = "SAME_PACKETS"   // variable with another number of packets, whatever time they take
)

// What Open vSwitch does not have, or does otherwise, is the same of the others: which
// bucket a flow goes by, PBB.
func TestSameAnswersOfOurs(t *testing.T) {
	t.Parallel()
	if within(t) {
		sameAnswers(t, *samePackets, 0, true)
	}
}

// At scale, as long as there is time: a million packets by SAME_PACKETS=1000000, with a
// tenth as many changes.
func TestSoakSameAnswers(t *testing.T) {
	packets, most := soakPackets, soakTime
	if text := os.Getenv(soakSize); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("%s=%q is no number of packets", soakSize, text)
		}
		packets, most = n, 0
	}
	if within(t) {
		sameAnswers(t, packets, most, false)
	}
}

// sameAnswers compares until so many packets were sent, or a time has passed; 0: none.
func sameAnswers(t *testing.T, packets int, most time.Duration, ours bool) {
	silence(t)
	all := []*subject{newModel(t), newDatapath(t, "p", "q", false), newDatapath(t, "r", "s", true)}
	if !ours {
		if s := newOpenVSwitch(t); s != nil {
			all = append(all, s)
		}
		for _, s := range all {
			s.sums = true
		}
	}
	r := rand.New(rand.NewPCG(*sameSeed, 7))
	began, sent, changes := time.Now(), 0, 0
	for round := 0; sent < packets && (most == 0 || time.Since(began) < most); round++ {
		if round%clearAfter == 0 {
			tellAll(all, beginning(ours)...)
		}
		list := someChanges(r, round, ours)
		changes += len(list)
		tellAll(all, list...)
		sent += sendAll(t, r, all, roundCopies)
		compare(t, fmt.Sprintf("round %d of seed %d", round, *sameSeed), all)
		if t.Failed() {
			for _, m := range list {
				t.Logf("after %+v", m)
			}
			return
		}
	}
	runOut(t, r, all, ours)
	t.Logf("%d packets and %d changes of tables in %v, the same of %d switches; flows did %+v", sent, changes, time.Since(began).Round(time.Second), len(all), all[2].cache().Cached)
}

func tellAll(all []*subject, list ...of13.Message) {
	for _, s := range all {
		s.tell(list...)
	}
}

// sendAll sends some frames to all, so many times each, and says how many.
func sendAll(t *testing.T, r *rand.Rand, all []*subject, copies int) (n int) {
	t.Helper()
	var frames [][]byte
	var ports []int
	for range roundFrames {
		frames, ports = append(frames, plainFrame(t, r)), append(ports, r.IntN(samePorts))
	}
	slices.Sort(ports)
	for range copies {
		for _, s := range all {
			for i := range frames {
				s.receive(ports[i], frames[i])
			}
			s.settle()
		}
	}
	return len(frames) * copies
}

// compare compares what has come of everything with the model's, which is first.
func compare(t *testing.T, what string, all []*subject) {
	t.Helper()
	model := all[0].answer()
	for _, s := range all[1:] {
		want, got := model.comparable(s), answer{}
		for end := time.Now().Add(cacheBehind); ; time.Sleep(time.Millisecond) {
			got = s.answer().comparable(s)
			if got.equal(want) || time.Now().After(end) {
				break
			}
		}
		for i, kind := range []string{"frames", "packet-ins", "entries that went", "statistics"} {
			differ(t, fmt.Sprintf("%s, %s, %s", what, s.name, kind), want[i], got[i])
		}
	}
	for _, s := range all {
		s.frames, s.in, s.removed = nil, nil, nil
	}
}

// answer is frames, packet-ins, entries that went and statistics.
type answer [4][]string

func (a answer) equal(b answer) bool {
	return slices.EqualFunc(a[:], b[:], func(x, y []string) bool { return slices.Equal(x, y) })
}

// leastTimeout is the shortest of entries that run out: who was stopped for so
// long meanwhile tries again.
const leastTimeout = 2 * time.Second

// runOut lets entries run out: those that were used last, and those that were not.
func runOut(t *testing.T, r *rand.Rand, all []*subject, ours bool) {
	t.Helper()
	for try := 0; ; try++ {
		tellAll(all, beginning(ours)...)
		compare(t, "beginning", all)
		began := time.Now()
		tellAll(all, timedEntries(r, ours)...)
		sendAll(t, r, all, 3)
		for _, s := range all {
			s.answer() // counters are in the entries
		}
		if time.Since(began) < leastTimeout/2 {
			break
		} else if try == 10 {
			t.Skip("the machine is too busy for timeouts")
		}
		for _, s := range all {
			s.frames, s.in, s.removed = nil, nil, nil
		}
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		left := make(map[string]int)
		for _, s := range all { // all in turn, so that none finds its controller silent
			left[s.name] = s.entries() - sameTables
		}
		if !slices.ContainsFunc(all, func(s *subject) bool { return left[s.name] > 0 }) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("entries that should have run out: %v", left)
		}
	}
	compare(t, "timeouts", all)
}
