package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"sublet/datapath/kernel"
	"sublet/plan"
	"sublet/vnet"
)

// On a kernel without netem a process, the carrier, delays wires. What comes in
// by one end leaves by a TAP device that has the shape of the wire, so that what
// waits for the wire is ordered before it is delayed; the process gives it back
// when it is due, and it leaves by the other end:
//
//	w0a --cross--> d0b [shape] == carrier == d0b --cross--> w0b

// carried is a wire that is delayed so, in both directions.
type carried struct {
	Link      int             `json:"link"` // index
	MTU       int             `json:"mtu"`
	Rate      vnet.Rate       `json:"rate_bps"`
	Buffering time.Duration   `json:"buffering_ns,omitempty"`
	Impair    vnet.Impairment `json:"impair"`
}

// carrying is what the carrier is told.
type carrying struct {
	Namespace string    `json:"namespace"`
	Wires     []carried `json:"wires"`
}

// carrierDevice names the device that delays what leaves by one end of a link.
func carrierDevice(link, end int) string { return fmt.Sprintf("d%d%c", link, 'a'+end) }

// carry lets the carrier delay a link.
func (l *layout) carry(index int) {
	link := l.substrate.Links[index]
	l.carried = append(l.carried, carried{
		Link: index, MTU: link.WireMTU(), Rate: plan.WireRate(l.substrate, link.Capacity), Buffering: l.buffering,
		Impair: vnet.Impairment{Delay: link.Latency},
	})
}

// hold is how many bytes are on the wire at most: twice what it brings in its
// delay, for the process may be late too.
func (w carried) hold() int {
	const least, most = 1 << 20, 64 << 20
	return min(least+int(2*w.Impair.Delay.Seconds()*float64(w.Rate.BytesPerSecond())), most)
}

// carrierName is the carrier's among the lab's processes.
const carrierName = "wires"

// startCarrier starts the carrier, if there is anything to carry, and waits
// until all wires go by it.
func (l *layout) startCarrier(ctx context.Context, spec Spec, s *state) error {
	if len(l.carried) == 0 {
		return nil
	}
	file := filepath.Join(dirOf(spec.Run), "wires.json")
	if err := writeJSON(file, carrying{filepath.Join(netnsDir, l.wires()), l.carried}); err != nil {
		return err
	}
	if err := s.start("", carrierName, spec.Exe, WiresCommand, file); err != nil {
		return err
	}
	ns, c, err := openNamespace(l.wires())
	if err != nil {
		return err
	}
	defer ns.Close()
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return s.await(ctx, func(context.Context) error { return l.carries(c) })
}

// carries says whether all wires go by the carrier.
func (l *layout) carries(c *kernel.Conn) error {
	for _, w := range l.carried {
		for end := range 2 {
			device, err := c.LinkByName(carrierDevice(w.Link, end))
			if err != nil {
				return err
			}
			if !device.Up {
				return errors.New("the process that delays wires is not ready")
			}
		}
	}
	return nil
}

// targetsOf lists where what leaves by the devices of a wire goes first: the
// devices of the carrier, if it delays the wire.
func targetsOf(c *kernel.Conn, index int, devices [2]int) (targets [2]int, err error) {
	targets = devices
	for end := range targets {
		d, err := c.LinkByName(carrierDevice(index, end))
		if kernel.NotFound(err) {
			continue
		}
		if err != nil {
			return targets, err
		}
		targets[end] = d.Index
	}
	return targets, nil
}
