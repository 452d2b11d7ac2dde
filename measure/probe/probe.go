// Package probe measures the links of a virtual network from inside its nodes.
//
// A probe runs in each node (Main, the program's hidden command __probe),
// sends and receives on the node's interfaces, and takes commands on standard
// input. Check, outside, starts the probes and leads them through the phases,
// all links and both directions at once:
//
//	open, dial   sockets on every interface (SO_BINDTODEVICE)
//	ping         round trips, idle
//	tcp          saturated by TCP (CUBIC), with round trips meanwhile
//	udp          saturated by paced datagrams
//	loss         UDP at 0.9 of the allocated rate, every number accounted for
//
// Packets carry the run's random number, for a node belongs to its tenant,
// whose processes may send anything to our ports. Their root can read that number
// off the packets, so figures are held against what the hosts counted of the
// links meanwhile (Options.Carried): a node can make its own verdict worse than
// the link is, but hardly better.
package probe

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lineLimit bounds a command or reply: a thousand links at one node.
	lineLimit = 4 << 20

	// idleLimit ends a probe whose coordinator has fallen silent.
	idleLimit = 2 * time.Minute

	// quietTime without an arrival means that what is missing is lost.
	quietTime = 500 * time.Millisecond
)

// Main runs a probe: commands are read from in, one JSON object a line, and
// answered on out. It returns the exit code when in ends: 0, or 1 if it was
// not the coordinator's language or nothing came for two minutes.
func Main(in io.Reader, out io.Writer) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p := &prober{in: map[int]*receiver{}, out: map[int]*sender{}}
	answer := json.NewEncoder(out)
	lines := readLines(in, cancel)
	for {
		select {
		case line, more := <-lines:
			if !more {
				return 0
			}
			var c command
			if json.Unmarshal(line, &c) != nil || answer.Encode(p.do(ctx, c)) != nil {
				return 1
			}
		case <-time.After(idleLimit):
			return 1
		}
	}
}

// readLines reads ahead, so that the end of input is noticed while a command
// is being done, and calls over at the end.
func readLines(in io.Reader, over func()) <-chan []byte {
	lines := make(chan []byte)
	go func() {
		defer close(lines)
		defer over()
		scanner := bufio.NewScanner(in)
		scanner.Buffer(nil, lineLimit)
		for scanner.Scan() {
			line := append([]byte(nil), scanner.Bytes()...)
			select {
			case lines <- line:
			case <-time.After(idleLimit):
				return
			}
		}
	}()
	return lines
}

// prober is a probe's state: its ends of flows, by their number.
type prober struct {
	run uint64
	mu  sync.Mutex
	in  map[int]*receiver
	out map[int]*sender
}

// do carries out one command.
func (p *prober) do(ctx context.Context, c command) reply {
	if c.Run != 0 {
		p.run = c.Run
	}
	switch c.Op {
	case opPing, opTCP, opLoad:
		return watched(ctx, c, p.load)
	case opOpen:
		return reply{In: each(c.In, func(f flow, g *figure) error { return p.open(ctx, f, g) })}
	case opDial:
		return reply{Out: each(c.Out, func(f flow, _ *figure) error { return p.dial(f) })}
	case opStream:
		return reply{Out: p.eachOut(c, func(s *sender, _ flow, _ *figure) error { return s.connect(ctx) })}
	case opExpect:
		return reply{In: p.eachIn(c, func(r *receiver, f flow, _ *figure) error {
			f.MTU = r.flow.MTU
			r.sink.expect(c, f)
			return nil
		})}
	case opTally:
		return reply{In: p.eachIn(c, func(r *receiver, f flow, g *figure) error {
			counts := r.sink.settle(ctx, f.Sent, quietTime)
			g.Arrived = &counts
			return nil
		})}
	}
	return reply{Err: fmt.Sprintf("unknown operation %q", c.Op)}
}

// load carries out a command whose figures want of a processor spoils.
func (p *prober) load(ctx context.Context, c command) reply {
	switch c.Op {
	case opTCP:
		return p.tcp(ctx, c)
	case opLoad:
		return reply{Out: p.eachOut(c, func(s *sender, f flow, g *figure) error { return s.sendLoad(ctx, c, f, g) })}
	}
	return reply{Out: p.eachOut(c, func(s *sender, f flow, g *figure) (err error) {
		g.RTT, err = s.pings(ctx, c.Epoch, f.Interval, c.Window)
		return err
	})}
}

func (p *prober) open(ctx context.Context, f flow, g *figure) error {
	r, ports, err := openReceiver(ctx, p.run, f)
	if err != nil {
		g.Taken = f.Ports.UDP != 0 && errors.Is(err, unix.EADDRINUSE)
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.in[f.ID], g.Ports = r, ports
	return nil
}

func (p *prober) dial(f flow) error {
	s, err := openSender(p.run, f)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out[f.ID] = s
	return nil
}
