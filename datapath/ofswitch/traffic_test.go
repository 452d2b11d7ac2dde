package ofswitch

import (
	"encoding/binary"
	"sort"
	"sync/atomic"
	"testing"
	"time"

	"sublet/openflow/of13"
)

// What is changed while frames pass loses none of them, counts each once, and holds
// for all that are sent after the barrier's reply.
func TestChangesUnderTraffic(t *testing.T) { onBoth(t, changesUnderTraffic) }

const (
	inFlight    = 64 // frames that have been sent and have not come
	changesMade = 300
)

func changesUnderTraffic(t *testing.T, inKernel bool) {
	far := wires(t)
	c := running(t, inKernel)
	var sent, seen atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	change(c, 0)
	var came []passed
	go func() {
		defer close(done)
		for limit := time.Now().Add(30 * time.Second); time.Now().Before(limit); {
			came = collect(far[1], came, &seen)
			select {
			case <-stop:
				if sent.Load() == seen.Load() {
					return
				}
			default:
				if sent.Load()-seen.Load() < inFlight {
					far[0].write(numbered(sent.Add(1)), nil)
				}
			}
		}
	}()
	answered := []int64{0} // the last frame that may have been sent before a change was answered
	for n := int64(1); n <= changesMade; n++ {
		change(c, n)
		answered = append(answered, sent.Load()+1) // one may be on its way to the device
	}
	for end := time.Now().Add(10 * time.Second); sent.Load() < answered[changesMade]+inFlight && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	close(stop)
	<-done
	if sent.Load() != seen.Load() {
		t.Errorf("of %d frames %d came", sent.Load(), seen.Load())
	}
	judge(t, answered, came)
	c.send(everyEntry)
	if list := c.want(of13.TypeMultipartReply).(*of13.MultipartReply).Flows; len(list) != 1 || list[0].Packets != uint64(sent.Load()) {
		t.Errorf("of %d frames: %+v", sent.Load(), list)
	}
}

// change has frames marked with its number as they pass, and waits for the barrier.
func change(c *controller, number int64) {
	m := output(2, of13.Exact(of13.InPort, 1))
	mark := of13.SetField(of13.Exact(of13.EthSrc, uint64(number)))
	m.Instructions[0].Actions = []of13.Action{mark, of13.Output(2)}
	c.send(m, &of13.Plain{Kind: of13.TypeBarrierRequest}) // counters stay: the flag for new ones is not set
	c.want(of13.TypeBarrierReply)
}

// passed is a frame, and the change that it met.
type passed struct{ number, change int64 }

func collect(d *device, came []passed, seen *atomic.Int64) []passed {
	for r := (received{}); d.read(&r); {
		came = append(came, passed{int64(binary.BigEndian.Uint64(r.frame[14:])), int64(binary.BigEndian.Uint32(r.frame[8:]))})
		seen.Add(1)
	}
	return came
}

// judge wants no frame to have met what was there before a change that had been
// answered when it was sent.
func judge(t *testing.T, answered []int64, came []passed) {
	t.Helper()
	if len(came) == 0 {
		t.Fatal("no frame came")
	}
	late := 0
	for _, p := range came {
		if last := sort.Search(len(answered), func(i int) bool { return answered[i] >= p.number }) - 1; p.change < int64(last) {
			late++
		}
	}
	if last := came[len(came)-1]; late > 0 || last.change != changesMade {
		t.Errorf("%d of %d frames met what was there before a change that had been answered; the last met change %d", late, len(came), last.change)
	}
}
