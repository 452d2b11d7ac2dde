package vxrouter

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"sublet/datapath/bpf"
	"sublet/datapath/kernel"
)

// Times of the copy. It is believed for belief after it was last looked at; a
// killed agent's routers so go on by their stacks. What the kernel tells of is
// read after settle, which lets a burst pass, and not more often than
// share allows: then the stack forwards in between.
const (
	glanceEvery = time.Second
	surveyEvery = 10 * time.Second
	belief      = 3 * time.Second
	settle      = 3 * time.Millisecond
	share       = 3
	slowSurvey  = 10 * time.Millisecond
)

// follower keeps one router's copy like its kernel's table.
type follower struct {
	key  string
	ns   *os.File
	pins *bpf.Pins
	all  *ebpf.Collection

	program, version     *ebpf.Program
	ways, states, counts *ebpf.Map

	conn   *kernel.Conn
	events *os.File

	table map[shortKey]shortWay // as the map is
	state shortState
	view  view
	took  time.Duration // of the last survey

	mu  sync.Mutex
	off string // why the stack forwards; "" when it does not

	stop context.CancelFunc
	done chan struct{}
}

// follow begins to follow a router.
func follow(host *kernel.Host, key string) (*follower, error) {
	ns, err := host.Open(key)
	if err != nil {
		return nil, err
	}
	f := &follower{key: key, ns: ns, done: make(chan struct{}), off: "not looked at yet"}
	if err := f.open(host); err != nil {
		f.close()
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	f.stop = stop
	go f.run(ctx)
	return f, nil
}

// open opens tables and programs, and listens to the namespace.
func (f *follower) open(host *kernel.Host) error {
	pins, err := bpf.OpenPins(host, pinsOf(f.key))
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
	spec, err := loadShort()
	if err != nil {
		return err
	}
	if f.all, _, err = f.pins.Load(spec); err != nil {
		return err
	}
	f.program, f.version = f.all.Programs[shortProgVxrouterShort], f.all.Programs[shortProgVxrouterVersion]
	f.ways, f.states, f.counts = f.all.Maps[shortMapWays], f.all.Maps[shortMapStates], f.all.Maps[shortMapCounts]
	return f.recall()
}

// recall reads what an earlier agent left, so that only what changed since is
// written.
func (f *follower) recall() error {
	if err := f.states.Lookup(uint32(0), &f.state); err != nil {
		return err
	}
	f.table = make(map[shortKey]shortWay)
	var key shortKey
	var way shortWay
	all := f.ways.Iterate()
	for all.Next(&key, &way) {
		f.table[key] = way
	}
	return all.Err()
}

// groups are the kinds of change that matter.
const groups = 1<<(unix.RTNLGRP_LINK-1) | 1<<(unix.RTNLGRP_NEIGH-1) | 1<<(unix.RTNLGRP_TC-1) |
	1<<(unix.RTNLGRP_IPV4_IFADDR-1) | 1<<(unix.RTNLGRP_IPV4_ROUTE-1) | 1<<(unix.RTNLGRP_IPV4_RULE-1) |
	1<<(unix.RTNLGRP_IPV4_NETCONF-1) | 1<<(unix.RTNLGRP_NEXTHOP-1)

// listen opens a socket for events of the calling thread's namespace. Reads
// wait in Go's poller, so a router costs no thread.
func listen() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open a socket for events: %w", err)
	}
	var all uint32 = groups & (1<<32 - 1)
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: all}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("listen for events: %w", err)
	}
	return os.NewFile(uintptr(fd), "events"), nil
}

// end stops following; what is pinned stays unless unpin.
func (f *follower) end(unpin bool) error {
	f.stop()
	f.events.SetReadDeadline(time.Now())
	<-f.done
	var err error
	if unpin {
		err = f.pins.Unpin()
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
			f.glance()
		}
		changed = f.wait(ctx)
		if changed && f.took > slowSurvey {
			f.suspend("changes faster than it can be read")
		}
		if changed {
			sleep(ctx, min(share*f.took+settle, glanceEvery))
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

// wait waits for a change that matters, at most until the next glance.
func (f *follower) wait(ctx context.Context) (changed bool) {
	f.events.SetReadDeadline(time.Now().Add(glanceEvery))
	buffer := make([]byte, 32<<10)
	for ctx.Err() == nil {
		n, err := f.events.Read(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return false
		}
		if err != nil || f.matters(buffer[:n]) { // an error: some were lost
			return true
		}
	}
	return false
}

// drain forgets what is told already: it is about to be read.
func (f *follower) drain() {
	f.events.SetReadDeadline(time.Now().Add(time.Millisecond))
	buffer := make([]byte, 32<<10)
	for {
		if _, err := f.events.Read(buffer); errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
	}
}

// matters says whether messages tell of anything but a known neighbour that
// was found to be still there.
func (f *follower) matters(b []byte) bool {
	for len(b) >= unix.NLMSG_HDRLEN {
		size := int(binary.NativeEndian.Uint32(b))
		if size < unix.NLMSG_HDRLEN || size > len(b) {
			return true
		}
		n, mac, state, usable := parseNeighbour(b[unix.NLMSG_HDRLEN:size])
		if binary.NativeEndian.Uint16(b[4:]) != unix.RTM_NEWNEIGH || n.address.Is4() && (!usable || f.view.neighbours[n] != mac) {
			return true
		}
		if state&unix.NUD_STALE != 0 && f.view.wanted()[n] {
			f.touch(n)
		}
		b = b[min((size+3)&^3, len(b)):]
	}
	return false
}

// touch makes the kernel find out whether a neighbour is there, as a packet to
// it would: the short way's packets do not pass where it counts them.
func (f *follower) touch(n neighbour) {
	header := make([]byte, 12) // struct ndmsg
	header[0] = unix.AF_INET
	binary.NativeEndian.PutUint32(header[4:], uint32(n.index))
	header[10] = unix.NTF_USE
	m := kernel.NewMessage(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, header)
	_ = f.conn.Do(m.Attr(unix.NDA_DST, n.address.AsSlice())) // what is not found stays the stack's
}
