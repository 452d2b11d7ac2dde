package ofswitch

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"sublet/internal/stall"
	"sublet/openflow/channel"
	"sublet/openflow/of13"
)

// metered is an entry to port 2 behind meter 1.
func metered() *of13.FlowMod {
	m := output(2)
	m.Instructions = append([]of13.Instruction{{Type: of13.InstructionMeter, Meter: 1}}, m.Instructions...)
	return m
}

func (c *controller) meter() of13.MeterStats {
	c.t.Helper()
	c.send(&of13.MultipartRequest{Kind: of13.MultipartMeter, Number: 1})
	m := c.want(of13.TypeMultipartReply).(*of13.MultipartReply).Meters[0]
	m.Bands = slices.Clone(m.Bands) // which the next message overwrites
	return m
}

// A meter lets through what its rate is, within 1 %, of datagrams that come faster, and
// its counters, those of entry and port say the same.
func TestMeterLetsItsRateThrough(t *testing.T) { onBoth(t, meterLetsItsRateThrough) }

func meterLetsItsRateThrough(t *testing.T, inKernel bool) {
	const rate, burst = 8000, 80 // kbit/s, kbit
	far := wires(t)
	c := running(t, inKernel)
	c.send(&of13.MeterMod{Flags: of13.MeterKBPS | of13.MeterBurst, Meter: 1, Bands: []of13.Band{{Kind: of13.BandDrop, Rate: rate, Burst: burst}}}, metered())
	c.meter() // once the entry is there
	var stop atomic.Bool
	defer stop.Store(true)
	go func() {
		for !stop.Load() {
			for range 4 {
				far[0].write(queued(1), nil)
			}
			time.Sleep(time.Millisecond)
		}
	}()
	stall.Try(t, func() (lacked float64, wrong error) {
		was, begin := c.meter(), time.Now()
		time.Sleep(1500 * time.Millisecond)
		is, took := c.meter(), time.Since(begin)
		passed := float64(is.In.Bytes-is.Bands[0].Bytes-was.In.Bytes+was.Bands[0].Bytes) * 8
		part := passed / (rate * 1000 * took.Seconds())
		wrong = fmt.Errorf("%.4f of the meter's rate passed", part)
		switch {
		case passed > rate*1000*(took.Seconds()+0.02)+burst*1000:
			return stall.Never, wrong
		case part < 0.99:
			return 1 - part, wrong
		case part > 1.01:
			return stall.Above(part - 1), wrong
		}
		return 0, nil
	})
	stop.Store(true)
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) { // until all has arrived
		m := c.meter()
		c.send(&of13.MultipartRequest{Kind: of13.MultipartPort, Number: of13.PortAny})
		ports := c.want(of13.TypeMultipartReply).(*of13.MultipartReply).Ports
		if ports[0].RxPackets == m.In.Packets && ports[1].TxPackets == m.In.Packets-m.Bands[0].Packets && ports[1].TxBytes == m.In.Bytes-m.Bands[0].Bytes {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("received %d, sent %d; the meter had %d and dropped %d", ports[0].RxPackets, ports[1].TxPackets, m.In.Packets, m.Bands[0].Packets)
		}
	}
}

// In the kernel no more than the first packets of a metered flow come to the process.
func TestMetersAreInTheKernel(t *testing.T) {
	if !within(t) {
		return
	}
	far := wires(t)
	c := running(t, true)
	c.send(&of13.MeterMod{Flags: of13.MeterPKTPS | of13.MeterBurst, Meter: 1, Bands: []of13.Band{{Kind: of13.BandDSCPRemark, Rate: 1, Burst: 1, Precedence: 1}}}, metered())
	c.meter()
	frame := ipv4(64)
	frame[15], frame[24], frame[25] = 0x28, 0, 0 // AF11
	binary.BigEndian.PutUint16(frame[24:], ipv4Sum(frame))
	for range 20 {
		far[0].write(frame, nil)
		c.meter() // which waits for the flow
	}
	var classes [64]int
	for range 20 {
		if got := arrives(far[1], 5*time.Second); got != nil {
			classes[got[15]>>2]++
			if sum := ipv4Sum(got); sum != 0 {
				t.Errorf("checksum of %x is off by %x", got, sum)
			}
		}
	}
	if classes[10]+classes[12] != 20 || classes[12] < 15 {
		t.Errorf("classes of what came: %v", classes)
	}
	if m := c.meter(); m.In.Packets != 20 || int(m.Bands[0].Packets) != classes[12] {
		t.Errorf("%+v", m)
	}
	c.send(&of13.MultipartRequest{Kind: of13.MultipartExperimenter, Experimenter: channel.Experimenter, ExpType: channel.KindCache})
	var n channel.CacheCounters
	if err := json.Unmarshal(c.want(of13.TypeMultipartReply).(*of13.MultipartReply).Data, &n); err != nil || n.Packets < 15 {
		t.Errorf("in the kernel %+v, %v", n, err)
	}
}

// ipv4Sum is 0 of an IPv4 header whose checksum is right.
func ipv4Sum(frame []byte) (sum uint16) {
	all := uint32(0)
	for i := 14; i < 34; i += 2 {
		all += uint32(binary.BigEndian.Uint16(frame[i:]))
	}
	return ^uint16(all + all>>16)
}
