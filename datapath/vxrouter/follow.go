package vxrouter

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/cilium/ebpf"

	"sublet/datapath/bpf"
	"sublet/datapath/hop"
	"sublet/datapath/kernel"
)

// Times of the copy. It is believed for belief after it was last looked at; a
// killed agent's routers so go on by their stacks. What the kernel tells of is
// read after settle, which lets a burst pass, and not more often than
// share allows: then the stack forwards in between.
const (
	statePollEvery = time.Second
	surveyEvery    = 10 * time.Second
	belief         = 3 * time.Second
	settle         = 3 * time.Millisecond
	share          = 3
	slowSurvey     = 10 * time.Millisecond
)

// follower keeps one router's copies like its kernel's tables.
type follower struct {
	key  string
	host *kernel.Host
	ns   *os.File
	pins *bpf.Pins
	all  *ebpf.Collection

	program        *ebpf.Program
	joined         *hop.Ports
	states, counts *ebpf.Map
	copies         [2]*tableCopy // IPv4, IPv6

	conn   *kernel.Conn
	events *os.File

	state fastpathState
	took  time.Duration // of the last survey

	mu   sync.Mutex
	offs [2]string // why the stack forwards, as in copies

	stop context.CancelFunc
	done chan struct{}
}

// follow begins to follow a router.
func follow(host *kernel.Host, key string) (*follower, error) {
	ns, err := host.Open(key)
	if err != nil {
		return nil, err
	}
	f := &follower{key: key, ns: ns, host: host, done: make(chan struct{}), offs: [2]string{unseen, unseen}}
	if err := f.open(); err != nil {
		f.close()
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	go f.run(ctx)
	return f, nil
}

// unseen is why a router that was not looked at yet is the stack's.
const unseen = "not looked at yet"

// open opens tables and programs, and listens to the namespace.
func (f *follower) open() error {
	pins, err := bpf.OpenPins(f.host, pinsOf(f.key))
	if err != nil {
		return err
	}
	f.pins = pins
	if err := f.load(); err != nil {
		return err
	}
	return kernel.In(f.ns, func() error {
		if f.conn, err = kernel.Dial(); err != nil {
			return err
		}
		f.conn.Foreign = true
		f.events, err = listen()
		return err
	})
}

// load opens the pinned tables and programs, or makes them.
func (f *follower) load() error {
	spec, err := loadFastpath()
	if err != nil {
		return err
	}
	if f.all, _, err = f.pins.Load(spec, renamed()...); err != nil {
		return err
	}
	f.joined = hop.PortsOf(f.host, f.all, "vxrouter")
	f.program = f.all.Programs[fastpathProgVxrouterFastpath]
	f.states, f.counts = f.all.Maps[fastpathMapStates], f.all.Maps[fastpathMapCounts]
	f.copies = [2]*tableCopy{
		{family: ipv4, version: f.all.Programs[fastpathProgVxrouterVersion], fib: f.all.Maps[fastpathMapFib4]},
		{family: ipv6, version: f.all.Programs[fastpathProgVxrouterVersion6], fib: f.all.Maps[fastpathMapFib6]},
	}
	for _, t := range f.copies {
		if err := t.recall(); err != nil {
			return err
		}
	}
	return f.states.Lookup(uint32(0), &f.state)
}

// renamed are the pins that versions before 0.1 called otherwise.
func renamed() []bpf.Renamed {
	return append(hop.RenamedPorts("vxrouter"),
		bpf.Renamed{From: "ways", To: fastpathMapFib4}, bpf.Renamed{From: "ways6", To: fastpathMapFib6},
		bpf.Renamed{From: "recents", To: fastpathMapRouteCache},
		bpf.Renamed{From: bpf.ProgramPin("vxrouter_short"), To: bpf.ProgramPin(fastpathProgVxrouterFastpath)})
}

// end stops following; what is pinned stays unless unpin.
func (f *follower) end(unpin bool) error {
	f.stop()
	f.events.SetReadDeadline(time.Now())
	<-f.done
	var err error
	if unpin {
		err = errors.Join(f.joined.LeaveAll(nil), f.pins.Unpin())
	}
	pins := f.pins
	f.close()
	return errors.Join(err, pins.Close())
}

func (f *follower) close() {
	if f.all != nil {
		f.all.Close()
	}
	if f.conn != nil {
		f.conn.Close()
	}
	if f.events != nil {
		f.events.Close()
	}
	f.ns.Close()
}

// run surveys whenever something changed, and at times in any case.
func (f *follower) run(ctx context.Context) {
	defer close(f.done)
	var surveyed time.Time
	changed := true
	for ctx.Err() == nil {
		began := time.Now()
		if changed || began.Sub(surveyed) > surveyEvery {
			f.look()
			surveyed, f.took = began, time.Since(began)
		} else {
			f.pollState()
		}
		changed = f.wait(ctx)
		if changed && f.took > slowSurvey {
			f.suspend("changes faster than it can be read")
		}
		if changed {
			sleep(ctx, min(share*f.took+settle, statePollEvery))
			f.drain()
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
