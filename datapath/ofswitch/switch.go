package ofswitch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
	"sublet/openflow/slice"
	"sublet/report"
)

const (
	framesOfTurn   = 32   // of a port, before the next one's turn
	framesThatWait = 4096 // of a port, which are taken before a question is answered
	messagesOfTurn = 64
	tick           = 100 * time.Millisecond // how often entries are looked at for timeouts
	look           = time.Second            // how often ports are looked at that nothing is told of
	lookAgain      = 10 * time.Millisecond  // how long after a look ports that change wait for the next tick
	mostEvents     = 64                     // taken from epoll at once

	// Tags in epoll of what is no port.
	tagHub   = -1
	tagLinks = -2
	tagLocal = -3 // a port that has no index
	tagCache = -4
	tagConn  = -5 // a connection of which the descriptor is beside the tag

	tagControl = -6 // control in band of the port whose number is beside the tag
)

// Config of a switch.
type Config struct {
	Pipeline     pipeline.Config
	Ports        []string // see ParsePort; port numbers are 1, 2, ... in this order
	Follow       bool     // instead of Ports: see openNew; Local may come and go then, too
	Local        string   // the device that is port LOCAL; "": none
	InBand       *InBand  // nil: control is out of band
	Controllers  []channel.Target
	Auxiliary    uint8       // connections to each beside the main one
	AuxiliaryUDP bool        // those are datagrams
	TLS          *tls.Config // for controllers that ask for it
	Standalone   bool        // forward as a learning switch while there is no controller
	MissEntry    bool        // begin with entries that send what meets no other to controllers
	Kernel       bool        // forward by a cache of flows in the kernel
	PacketIns    int         // most that leave for controllers in a second; 0: no bound
	Keep         bool        // have what it was told, and flows in the kernel, go on in the working directory when the process ends
	Unread       int64       // bytes of replies that may wait for controllers; 0: see channel.Hub
	Management   string      // Unix socket where connections are answered that count as no controller; "": none
	Log          func(error)

	// Slices reads what slices of the switch there are to be, each with controllers of
	// its own, at the start and whenever the management connection says so. nil: there
	// are none, and Controllers are the whole switch's.
	Slices func() ([]slice.Slice, error)
}

// Switch is a running OpenFlow switch.
type Switch struct {
	config  Config
	hub     *channel.Hub
	tables  *pipeline.Switch
	devices []*device    // by port number less 1; nil: none at present
	local   *device      // port LOCAL; nil: none
	conn    *kernel.Conn // for looking at devices; nil: not yet
	links   int          // a netlink socket that tells of devices
	looked  int64        // when ports were looked at; 0: they are to be looked at
	packets allowances   // of packet-ins
	slices  *slice.Local // nil: none
	told    report.PacketIns
	stages  stages
	epoll   int
	event   int         // an eventfd: something is in the hub
	woken   atomic.Bool // it has been written since it was read
	start   time.Time
	current *received // the frame on its way; nil while a message is
	cache   *cache    // nil: none
	store   *store    // nil: all is gone with the process
	band    *band     // nil: control is out of band
	waiting []*device // ports that have frames to send, or a device that was busy
	emptied bool      // all frames that had come for the process have been taken
	runs    bool      // the loop has begun
}

// New opens the ports. It fails, with nothing open, if one cannot be opened.
func New(c Config) (_ *Switch, err error) {
	if err := c.Suits(); err != nil {
		return nil, err
	}
	s := &Switch{config: c, start: time.Now().Add(-time.Duration(monotonic())), epoll: -1, event: -1, links: -1, packets: allowances{rate: int64(c.PacketIns)}}
	s.hub = channel.NewHub(s.notify)
	s.hub.Auxiliary, s.hub.AuxiliaryUDP, s.hub.Watch, s.hub.Most = c.Auxiliary, c.AuxiliaryUDP, s.watchConnection, c.Unread
	if s.band, err = newBand(c.InBand, s.hub, s.hurry); err != nil {
		return nil, err
	}
	if c.Keep {
		if s.store, err = openStore(c.Pipeline.Entries); err != nil {
			return nil, err
		}
		c.Pipeline.Memory = s.store
	}
	c.Pipeline.Datapath = datapathName(c.Kernel)
	s.tables = pipeline.New(c.Pipeline, s)
	s.tables.Standalone, s.tables.Queues = c.Standalone, s.queuesOf
	s.tables.Aside, s.tables.Resume = s.putAside, s.takeUp
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, err
	}
	if s.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, err
	}
	if err := s.watch(s.event, tagHub); err != nil {
		return nil, err
	}
	if err := sweep(); err != nil {
		return nil, err
	}
	if c.Kernel {
		if s.cache, err = newCache(s.tables, c.Pipeline.DatapathID, c.Pipeline.Meters, c.Keep); err != nil {
			return nil, err
		}
		s.tables.Cache, s.tables.Meters = s.cache, s.cache
		s.cache.leaveControl(s.band)
		if err := s.watch(s.cache.upcall.fd, tagCache); err != nil {
			return nil, err
		}
	}
	if err := harmless(s.watchLinks); err != nil {
		return nil, err
	}
	for i, name := range c.Ports {
		if err := s.open(name, i); err != nil {
			return nil, err
		}
	}
	if c.Local != "" && !c.Follow {
		link, err := net.InterfaceByName(c.Local)
		if err != nil {
			return nil, fmt.Errorf("port LOCAL: there is no device %q in this network namespace", c.Local)
		}
		if err := s.openLocal(link.Index); err != nil {
			return nil, err
		}
	}
	s.lookAtPorts()
	return s, s.begin()
}

// begin makes what was there before, or what there is to be at first.
func (s *Switch) begin() error {
	any, err := s.resume()
	if err != nil {
		return err
	}
	if s.config.Slices != nil {
		return nil
	}
	if s.config.MissEntry && !any {
		return s.addMissEntries()
	}
	return nil
}

// resume makes what was there before; any is false if there was nothing.
func (s *Switch) resume() (any bool, err error) {
	if s.store != nil {
		if any, err = s.restore(); err != nil {
			return any, err
		}
	}
	if s.config.Slices != nil {
		if err := s.beginSlices(); err != nil {
			return any, err
		}
	} else if s.store != nil && s.store.sliced() { // what is there was several controllers'
		if err := s.empty(); err != nil {
			return any, err
		}
		any = false
	}
	if s.store != nil && s.cache != nil {
		s.cache.adopt()
	}
	return any, nil
}

// open makes what a word says the port of an index.
func (s *Switch) open(text string, at int) error {
	p, err := ParsePort(text)
	if err != nil {
		return err
	}
	d, err := p.open(uint32(at+1), s.config.Kernel)
	if err != nil {
		return err
	}
	return s.place(d, at)
}

// openAt makes a device that is known the port of an index.
func (s *Switch) openAt(name string, index, at int) error {
	d, err := openIndex(name, index, uint32(at+1), s.config.Kernel)
	if err != nil {
		return err
	}
	return s.place(d, at)
}

func (s *Switch) place(d *device, at int) error {
	for len(s.devices) <= at {
		s.devices = append(s.devices, nil)
	}
	s.devices[at] = d
	if err := s.listenControl(d); err != nil {
		return err
	}
	return s.listen(d, at)
}

// openLocal makes a device port LOCAL.
func (s *Switch) openLocal(index int) (err error) {
	if s.local, err = openIndex(s.config.Local, index, of13.PortLocal, s.config.Kernel); err != nil {
		return err
	}
	return errors.Join(s.listenControl(s.local), s.listen(s.local, tagLocal))
}

// listen has a port's frames come to the switch, or to its cache.
func (s *Switch) listen(d *device, tag int) error {
	if s.cache != nil {
		return s.cache.join(d)
	}
	if d.xsk == nil {
		return s.watch(d.fd, tag)
	}
	for _, socket := range d.xsk.Sockets {
		if err := s.watch(socket.FD(), tag); err != nil {
			return err
		}
	}
	return nil
}

// addMissEntries adds the table-miss entry of every table.
func (s *Switch) addMissEntries() error {
	for table := range s.config.Pipeline.Tables {
		_, err := s.tables.Do(s.now(), &of13.FlowMod{
			Table: uint8(table), Buffer: of13.NoBuffer, OutPort: of13.PortAny, OutGroup: of13.GroupAny,
			Instructions: []of13.Instruction{{Type: of13.InstructionApply, Actions: []of13.Action{of13.Output(of13.PortController)}}},
		})
		if err != nil {
			return fmt.Errorf("add the table-miss entry of table %d: %w", table, err)
		}
	}
	return nil
}

func (s *Switch) watch(fd, tag int) error {
	return unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(tag)})
}

func (s *Switch) watchConnection(fd int) error {
	return unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: channel.WatchEvents, Fd: tagConn, Pad: int32(fd)})
}

// present gives the ports that are there at present.
func (s *Switch) present() iter.Seq[*device] {
	return func(yield func(*device) bool) {
		for _, d := range s.devices {
			if d != nil && !yield(d) {
				return
			}
		}
		if s.local != nil {
			yield(s.local)
		}
	}
}

// Close gives up the ports.
func (s *Switch) Close() {
	for d := range s.present() {
		d.close()
	}
	if s.cache != nil {
		s.cache.close()
	}
	if s.conn != nil {
		s.conn.Close()
	}
	if s.store != nil {
		s.store.close()
	}
	for _, fd := range []int{s.epoll, s.event, s.links} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// notify has the switch's thread look into the hub, once for all that comes before
// it does.
func (s *Switch) notify() {
	if s.woken.CompareAndSwap(false, true) {
		unix.Write(s.event, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
}

func (s *Switch) now() int64 { return int64(time.Since(s.start)) }

// Run carries frames until ctx is done, or until it cannot listen for a controller.
func (s *Switch) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var connections sync.WaitGroup
	var mu sync.Mutex
	var failed error
	keep := func(run func() error) {
		connections.Go(func() {
			if err := run(); err != nil {
				mu.Lock()
				failed = errors.Join(failed, err)
				mu.Unlock()
				cancel()
			}
		})
	}
	for _, t := range s.config.Controllers {
		keep(func() error { return s.hub.Run(ctx, t, s.config.TLS, s.config.Log) })
	}
	if s.slices != nil {
		s.slices.Begin(ctx, s.config.TLS, s.config.Log, &connections)
	}
	if path := s.config.Management; path != "" {
		keep(func() error { return s.hub.Manage(ctx, path, s.config.Log) })
	}
	defer context.AfterFunc(ctx, s.notify)()
	err := s.loop(ctx)
	cancel()
	s.hub.Close()
	if s.slices != nil {
		s.slices.Close()
	}
	connections.Wait()
	return errors.Join(err, failed)
}

// loop is the one thread of the switch.
func (s *Switch) loop(ctx context.Context) error {
	s.runs = true
	drive()
	defer runtime.UnlockOSThread()
	events := make([]unix.EpollEvent, mostEvents)
	var expired int64
	for more, busy := false, false; ctx.Err() == nil; {
		s.beginTurn()
		wait := s.untilHeld(s.untilControl(int(tick / time.Millisecond)))
		if busy && wait > 1 {
			wait = 1
		}
		if more {
			wait = 0
		}
		n, err := s.wait(events, wait)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		s.control(events[:max(n, 0)])
		for _, e := range events[:max(n, 0)] {
			switch {
			case e.Fd == tagControl: // done
			case e.Fd == tagHub:
				s.heard()
				more = true
			case e.Fd == tagConn:
				s.ready(int(e.Pad), e.Events)
				more = true
			case e.Fd == tagLinks:
				s.drainLinks()
				s.linksChanged()
			case e.Fd == tagCache:
				s.upcalls(framesOfTurn)
			case e.Fd == tagLocal && s.local != nil:
				s.frames(s.local, framesOfTurn)
			case s.devices[e.Fd] != nil && !s.ended(s.devices[e.Fd], e.Events):
				s.frames(s.devices[e.Fd], framesOfTurn)
			}
		}
		s.release()
		if more {
			more = s.messages()
		}
		if now := s.now(); now-expired >= int64(tick) {
			s.tickHubs(time.Now())
			s.tables.Expire(now)
			s.tidy()
			expired = now
			if s.looked == 0 || now-s.looked >= int64(look) {
				s.lookAtPorts()
				if s.cache != nil && s.cache.deaf(s.conn) {
					return errors.New("the devices by which frames without a flow come are gone: somebody has deleted them")
				}
			}
			if s.cache != nil {
				s.cache.sweep()
			}
		}
		busy = s.flush()
		s.flushHubs()
		s.lap(&s.stages.Overhead)
	}
	return nil
}

// tidy keeps the store short.
func (s *Switch) tidy() {
	if s.store != nil {
		if err := s.store.tidy(s.tables.KeepAll); err != nil {
			s.config.Log(err)
		}
	}
}

// heard takes note of what notify said.
func (s *Switch) heard() {
	var b [8]byte
	unix.Read(s.event, b[:])
	s.woken.Store(false) // before the hub is looked into: what comes now wakes it up again
}

// messages takes some of what controllers have sent; more says that some may be left.
func (s *Switch) messages() (more bool) {
	alone, unmatched := s.config.Standalone && s.hub.Connected() == 0, s.hub.Unmatched()
	if alone != s.tables.Standalone || unmatched != s.tables.Unmatched {
		s.tables.Standalone, s.tables.Unmatched = alone, unmatched
		if s.cache != nil {
			s.cache.Invalidate(func(*pipeline.Flow) bool { return true })
		}
	}
	for range messagesOfTurn {
		in, ok := s.hub.Next()
		if ok {
			s.hub.Handle(in, s)
		}
		if !s.turnOfSlices() && !ok {
			return false
		}
	}
	return true
}

// Do does what a controller's message asks.
func (s *Switch) Do(m of13.Message) (of13.Message, error) {
	if m.Type() == of13.TypeMultipartRequest {
		s.catchUp()
	}
	if s.cache != nil && (channel.CacheCounters{}).Asks(m) {
		return s.cache.count().Reply()
	}
	if channel.AsksStatus(m) {
		return channel.StatusReply(s.status())
	}
	if channel.AsksSlices(m) {
		return channel.SlicesReply(s.reslice())
	}
	if port, frame, asks := channel.AsksTrace(m); asks {
		return s.trace(port, frame)
	}
	return s.tables.Do(s.now(), m)
}

// Atomic makes changes of which none stays if run fails.
func (s *Switch) Atomic(run func() error) error { return s.tables.Atomic(run) }

// catchUp takes the frames that wait at the ports, so that what is asked next
// has been counted. It is bounded: ports may get frames faster than they are taken.
func (s *Switch) catchUp() {
	if s.cache != nil {
		s.upcalls(framesThatWait)
		return
	}
	for d := range s.present() {
		s.frames(d, framesThatWait)
	}
}

// frames takes some frames of a port, at most so many.
func (s *Switch) frames(d *device, most int) {
	var r received
	now := s.now()
	s.current = &r
	s.lap(&s.stages.Overhead)
	for range most {
		took := d.read(&r)
		s.read(took)
		if !took {
			break
		}
		if s.band.has(r.frame) {
			continue
		}
		s.tables.Receive(now, d.number, r.frame)
		s.lap(&s.stages.Actions)
	}
	s.current = nil
	s.flush()
	s.lap(&s.stages.IO)
}

// linksChanged looks at the ports, at once if that was not done just before.
func (s *Switch) linksChanged() {
	if s.now()-s.looked >= int64(lookAgain) {
		s.lookAtPorts()
	} else {
		s.looked = 0
	}
}

// upcalls takes some frames that the cache had no flow for, at most so many. Flows
// are put into the cache behind the last of them.
func (s *Switch) upcalls(most int) {
	var r received
	now := s.now()
	s.current = &r
	s.lap(&s.stages.Overhead)
	s.emptied = false
	for range most {
		took := s.cache.upcall.read(&r)
		s.read(took)
		if !took {
			s.emptied = true
			break
		}
		if s.band.has(r.frame) {
			continue
		}
		waiting := s.tables.Waiting()
		f, cause := s.tables.ReceiveFlow(now, s.cache.numbers[r.mark], r.frame, r.packets())
		if s.tables.Waiting() > waiting {
			cause = pipeline.CauseMeter
		}
		s.cache.counters.Upcalls[cause]++
		s.lap(&s.stages.Actions)
		if f != nil {
			s.cache.add(f, r.frame)
		}
	}
	s.current = nil
	if s.cache.install(); s.emptied {
		s.tables.Rested()
	}
}

// lookAtPorts tells of devices that came up, went down or away.
func (s *Switch) lookAtPorts() {
	s.looked = s.now()
	if s.config.Follow {
		s.openNew()
	}
	s.lookAtQueues()
	for d := range s.present() {
		p, err := d.describe(s.conn)
		s.band.look(s.now(), d, err == nil && p.State&of13.PortStateDown == 0)
		if err == nil {
			s.tables.SetPort(s.now(), p)
			continue
		}
		s.tables.RemovePort(d.number)
		if s.config.Follow {
			s.shut(d)
		}
	}
}

// lookAtQueues sees which queues ports have, and by which frames may leave without
// passing one.
func (s *Switch) lookAtQueues() {
	for d := range s.present() {
		changed := d.lookAtQueues(s.conn, s.now())
		if s.cache != nil {
			s.cache.look(s.conn, d, changed)
		}
	}
}

// shut gives up a port's device.
func (s *Switch) shut(d *device) {
	if s.cache != nil {
		s.cache.leave(d)
	}
	d.close()
	if d == s.local {
		s.local = nil
	} else {
		s.devices[d.number-1] = nil
	}
}

// Send sends a frame out of a port.
func (s *Switch) Send(port, queue uint32, frame []byte) {
	if d := s.device(port); d != nil {
		s.lap(&s.stages.Actions)
		d.writeBy(d.socketOf(queue), frame, s.current)
		if d.xsk != nil && !d.waits {
			d.waits, s.waiting = true, append(s.waiting, d)
		}
		s.lap(&s.stages.IO)
	}
}

// PacketIn hands a packet to controllers, unless too many have gone already.
func (s *Switch) PacketIn(m *of13.PacketIn) {
	if !s.packets.take(s.now(), s.sliceOf(m.Table)) {
		s.told.OverRate++
		return
	}
	s.told.Sent++
	if s.happened(m) {
		return
	}
	s.hub.PacketIn(m)
}

// FlowRemoved tells controllers of an entry that is gone.
func (s *Switch) FlowRemoved(m *of13.FlowRemoved) {
	if !s.happened(m) {
		s.hub.FlowRemoved(m)
	}
}

// PortStatus tells controllers of a port.
func (s *Switch) PortStatus(m *of13.PortStatus) {
	if !s.happened(m) {
		s.hub.PortStatus(m)
	}
}
