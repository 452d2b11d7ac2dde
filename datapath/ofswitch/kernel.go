package ofswitch

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"sublet/datapath/kernel"
	"sublet/openflow/channel"
	"sublet/openflow/of13"
	"sublet/openflow/pipeline"
)

//go:generate ../bpf/generate flows flows.bpf.c -type flow -type rest -type bucket -type step -type meter -type mask -type setting -type run -type step_kind -type base -type how

const (
	flowIdle  = 10 * time.Second        // after which a flow leaves the cache, at most
	sweeps    = int(time.Second / tick) // after which all flows have been looked at
	mostAsked = 1 << 20                 // flows, by changes between two frames
	maxFlows  = 65536                   // as the program has it
)

// Counters of the cache of flows.
type Counters struct {
	Upcalls map[pipeline.Cause]uint64 // frames that came to the process, by why those like them have to
	Full    uint64                    // flows that found no room
	Cached  pipeline.Usage            // what flows were done to
}

// Counters of the cache; ok is false if there is none. Not while Run runs.
func (s *Switch) Counters() (c Counters, ok bool) {
	if s.cache == nil {
		return c, false
	}
	return s.cache.counters, true
}

// cache is the flows of a switch in the kernel. It is driven by the switch's thread.
type cache struct {
	tables     *pipeline.Switch
	objects    flowsObjects
	memory     [][]byte
	setting    *flowsSetting
	flows      []flowsFlow
	rests      []flowsRest // of the same slots
	buckets    []flowsBucket
	running    []flowsRun
	attached   map[int]link.Link // by device
	upcall     *device
	leading    int // the device that leads to upcall
	installed  map[flowKey]*installed
	pending    []*installed // decided on, and not yet in the kernel
	free       []uint32
	meters     []flowsMeter
	places     map[*pipeline.MeterState]uint32
	meterSlots []uint32 // that are free
	serial     uint64
	bySlot     []*installed      // nil where there is none
	hand       int               // the slot that was swept last
	asked      int               // flows that were asked whether they are stale since the last frame
	indexes    map[uint32]int    // of devices, by port number
	numbers    map[uint32]uint32 // the other way round
	across     map[uint32]bool   // ports whose frames go to the far end of their veth at once
	ports      map[uint32]*device
	counters   Counters
	samples    []sample // by slot; nil: flows end with this process
}

// keyWords are those of a key that the program reads, or of a mask. The first ones are
// in all keys, others in large ones.
type keyWords [len(flowsMask{}.Words)]uint64

const short = len(flowsFlow{}.Words)

// flowKey is what a flow is found by.
type flowKey struct {
	words keyWords
	mask  int
	large bool
}

// installed is a flow of the cache, and what of its counters has been credited.
type installed struct {
	*pipeline.Flow
	row      flowsFlow // as it was made
	steps    [len(flowsRest{}.Step)]flowsStep
	words    keyWords
	mask     keyWords
	key      flowKey
	slot     uint32
	placed   bool // it is in the kernel
	over     bool // it ended before
	credited pipeline.Usage
	port     uint32
	size     uint32
	head     [len(sample{}.head)]byte
}

func newCache(tables *pipeline.Switch, dpid uint64, meters int, keep bool) (_ *cache, err error) {
	c := &cache{tables: tables, numbers: make(map[uint32]uint32), across: make(map[uint32]bool), ports: make(map[uint32]*device), attached: make(map[int]link.Link), installed: make(map[flowKey]*installed), indexes: make(map[uint32]int)}
	c.places = make(map[*pipeline.MeterState]uint32)
	c.counters.Upcalls = make(map[pipeline.Cause]uint64)
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if keep {
		if err := c.keepFlows(); err != nil {
			return nil, err
		}
	}
	if err := c.load(meters); err != nil {
		return nil, fmt.Errorf("load the programs of the switch: %w", err)
	}
	if err := c.share(); err != nil {
		return nil, err
	}
	c.bySlot = make([]*installed, len(c.flows))
	for slot := range uint32(len(c.flows)) {
		c.free = append(c.free, uint32(len(c.flows))-1-slot)
	}
	if err := c.listen(fmt.Sprintf("%s%012x", upcallPrefix, dpid&(1<<48-1))); err != nil {
		return nil, err
	}
	c.setting.Upcall = uint32(c.leading)
	return c, nil
}

// load loads programs and maps, or takes over the maps of before. They are not
// pinned: they end with this process, or with the ports.
func (c *cache) load(meters int) error {
	spec, err := loadFlows()
	if err != nil {
		return err
	}
	for _, m := range spec.Maps {
		m.Pinning = ebpf.PinNone
	}
	processors, err := ebpf.PossibleCPU()
	if err != nil {
		return err
	}
	spec.Maps[flowsMapMeters].MaxEntries = uint32(meters + spareMeters)
	spec.Maps[flowsMapRunning].MaxEntries = uint32(processors)
	if c.samples == nil {
		return spec.LoadAndAssign(&c.objects, nil)
	}
	maps, err := inherited()
	if err != nil {
		return err
	}
	for _, m := range maps {
		defer m.Close() // the collection has descriptors of its own
	}
	if len(maps) == len(spec.Maps) {
		if err := spec.LoadAndAssign(&c.objects, &ebpf.CollectionOptions{MapReplacements: maps}); err == nil {
			return nil
		}
	}
	clear(c.samples)
	return spec.LoadAndAssign(&c.objects, nil) // none, or those of another version
}

// share maps what the programs and this process both write.
func (c *cache) share() error {
	settings, err := mapped[flowsSetting](c, c.objects.Settings)
	if err != nil {
		return err
	}
	c.setting = &settings[0]
	if c.flows, err = mapped[flowsFlow](c, c.objects.Flows); err != nil {
		return err
	}
	if c.rests, err = mapped[flowsRest](c, c.objects.Rests); err != nil {
		return err
	}
	if c.buckets, err = mapped[flowsBucket](c, c.objects.Buckets); err != nil {
		return err
	}
	if err := c.shareMeters(); err != nil {
		return err
	}
	c.running, err = mapped[flowsRun](c, c.objects.Running)
	return err
}

// mapped is the rows of an array of the kernel's.
func mapped[T any](c *cache, m *ebpf.Map) ([]T, error) {
	n := int(m.MaxEntries())
	size := n * int(unsafe.Sizeof(*new(T)))
	page := os.Getpagesize()
	b, err := unix.Mmap(m.FD(), 0, (size+page-1)/page*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map memory of the switch's programs: %w", err)
	}
	c.memory = append(c.memory, b)
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n), nil
}

// listen makes the devices by which frames come to this process, and listens. What a
// switch that was killed has left of them goes.
func (c *cache) listen(name string) error {
	conn, err := kernel.Dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	if old, err := conn.LinkByName(name); err == nil && c.samples != nil && old.Peer > 0 && old.Kind == "veth" {
		return c.listenOn(conn, old)
	} else if err == nil {
		if err := conn.DeleteLink(old.Index); err != nil {
			return err
		}
	}
	if err := newUpcall(conn, name, c.samples != nil); err != nil {
		return err
	}
	l, err := conn.LinkByName(name)
	if err != nil {
		return err
	}
	return c.listenOn(conn, l)
}

func (c *cache) listenOn(conn *kernel.Conn, l kernel.Link) error {
	c.leading = l.Index
	if err := c.attach(l.Peer, c.objects.OfswitchEnd); err != nil {
		return err
	}
	end, err := conn.LinkByIndex(l.Peer)
	if err != nil {
		return err
	}
	if err := conn.Do(kernel.UpLink(l.Index), kernel.UpLink(l.Peer)); err != nil {
		return err
	}
	if c.upcall, err = openDevice(end.Name, 0, false); err != nil {
		return err
	}
	return unix.SetsockoptInt(c.upcall.fd, unix.SOL_SOCKET, unix.SO_RCVMARK, 1)
}

// deaf says whether the devices by which frames come are gone. Who starts the process again
// has new ones.
func (c *cache) deaf(conn *kernel.Conn) bool {
	_, err := conn.LinkByIndex(c.leading)
	return kernel.NotFound(err)
}

// attach puts a program on what a device receives, unless it is there.
func (c *cache) attach(index int, program *ebpf.Program) error {
	if c.attached[index] != nil {
		return nil
	}
	if c.samples != nil {
		if err := stay(index, program); err != nil {
			return fmt.Errorf("attach a program to device %d: %w", index, err)
		}
		return nil
	}
	l, err := link.AttachTCX(link.TCXOptions{Interface: index, Program: program, Attach: ebpf.AttachTCXIngress})
	if err != nil {
		return fmt.Errorf("attach a program to device %d: %w", index, err)
	}
	c.attached[index] = l
	return nil
}

// join puts the program on a port's device, and makes it one that is sent to.
func (c *cache) join(d *device) error {
	c.indexes[d.number], c.numbers[uint32(d.index)] = d.index, d.number
	return c.attach(d.index, c.objects.OfswitchPort)
}

// look sees how frames leave by a port. One that is an end of a veth without a
// queue, whose other end is in another namespace, is passed over: frames go on as
// received there (bpf_redirect_peer, Linux 5.10). Flows end when that changes, or the
// port has other queues.
func (c *cache) look(conn *kernel.Conn, d *device, queues bool) {
	c.ports[d.number] = d
	l, err := conn.LinkByIndex(d.index)
	across := err == nil && l.Kind == "veth" && l.PeerNS >= 0
	if across {
		q, err := conn.RootQdisc(d.index)
		programs, err2 := link.QueryPrograms(link.QueryOptions{Target: d.index, Attach: ebpf.AttachTCXEgress})
		across = err == nil && (q.Kind == "" || q.Kind == "noqueue") && err2 == nil && len(programs.Programs) == 0
	}
	if across != c.across[d.number] || queues {
		c.across[d.number] = across
		c.Invalidate(func(*pipeline.Flow) bool { return true })
	}
}

// leave forgets a port. Flows that lead to it have been ended before.
func (c *cache) leave(d *device) {
	delete(c.indexes, d.number)
	delete(c.numbers, uint32(d.index))
	delete(c.across, d.number)
	delete(c.ports, d.number)
	if l := c.attached[d.index]; l != nil {
		l.Close()
		delete(c.attached, d.index)
	}
}

func (c *cache) close() {
	for _, l := range c.attached {
		l.Close()
	}
	if c.upcall != nil {
		unix.Close(c.upcall.fd)
	}
	if c.leading > 0 && c.samples == nil {
		if conn, err := kernel.Dial(); err == nil {
			conn.DeleteLink(c.leading)
			conn.Close()
		}
	}
	for _, b := range c.memory {
		unix.Munmap(b)
	}
	c.objects.Close()
}

// add keeps a flow to be installed. It is not installed at once, so that frames
// which have come to the process already leave before those that follow.
func (c *cache) add(f *pipeline.Flow, frame []byte) {
	in, ok := c.compile(f)
	if !ok {
		c.counters.Upcalls[pipeline.CauseAction]++
		return
	}
	in.port, in.size = uint32(f.Key.Get(of13.InPort)), uint32(len(frame))
	copy(in.head[:], frame)
	f.Place = in
	c.tables.Keep(f)
	c.pending = append(c.pending, in)
}

// install puts what is pending into the kernel.
func (c *cache) install() {
	c.asked = 0
	for _, in := range c.pending {
		if !in.over && !c.put(in) {
			c.tables.Forget(in.Flow)
		}
	}
	c.pending = c.pending[:0]
}

// put is false if there is no room, or there is such a flow already.
func (c *cache) put(in *installed) bool {
	at, ok := c.maskOf(in)
	if !ok || len(c.free) == 0 {
		c.counters.Full++
		return false
	}
	in.key = flowKey{words: in.words, mask: at, large: large(in.mask[:])}
	if c.installed[in.key] != nil {
		return false
	}
	last := len(c.free) - 1
	in.slot, c.free = c.free[last], c.free[:last]
	c.serial++
	row := &c.flows[in.slot]
	*row = in.row
	c.rests[in.slot] = flowsRest{Step: in.steps}
	row.Mask = uint8(at)
	copy(row.More[:], in.words[copy(row.Words[:], in.words[:]):])
	row.Used = uint64(monotonic())
	if c.samples != nil {
		c.samples[in.slot] = sample{serial: c.serial, port: in.port, size: in.size, head: in.head}
	}
	atomic.StoreUint64(&row.Serial, c.serial)
	m := &c.setting.Mask[at]
	if !c.lead(in) {
		c.counters.Full++
		atomic.StoreUint64(&row.Serial, 0)
		c.free = append(c.free, in.slot)
		return false
	}
	atomic.AddUint32(&m.Used, 1)
	if c.setting.Masks <= uint32(at) {
		atomic.StoreUint32(&c.setting.Masks, uint32(at)+1)
	}
	c.installed[in.key], c.bySlot[in.slot], in.placed = in, in, true
	return true
}

// large says whether a mask has bits in words behind the first ones.
func large(mask []uint64) bool {
	return slices.ContainsFunc(mask[short:], func(w uint64) bool { return w != 0 })
}

// maskOf finds the mask of a flow among those in use, or makes room for it.
func (c *cache) maskOf(in *installed) (at int, ok bool) {
	at = -1
	for i := range c.setting.Mask {
		m := &c.setting.Mask[i]
		if m.Used == 0 {
			if at < 0 {
				at = i
			}
		} else if m.Words == in.mask {
			return i, true
		}
	}
	if at < 0 {
		return 0, false
	}
	m := &c.setting.Mask[at]
	m.Words, m.Large = in.mask, 0
	if large(in.mask[:]) {
		m.Large = 1
	}
	return at, true
}

// Fold credits what the kernel did since the last time.
func (c *cache) Fold() {
	for _, in := range c.installed {
		c.credit(in)
	}
}

// count gives the counters as they are now.
func (c *cache) count() channel.CacheCounters {
	c.Fold()
	n := channel.CacheCounters{Packets: c.counters.Cached.Packets, Bytes: c.counters.Cached.Bytes, Flows: uint64(len(c.installed)), Full: c.counters.Full}
	n.Upcalls = make(map[string]uint64, len(c.counters.Upcalls))
	for cause, frames := range c.counters.Upcalls {
		n.Upcalls[cause.String()] = frames
	}
	return n
}

func (c *cache) credit(in *installed) {
	row, rest := &c.flows[in.slot], &c.rests[in.slot]
	packets, bytes, cut := atomic.LoadUint64(&row.Packets), atomic.LoadUint64(&row.Bytes), atomic.LoadUint64(&row.Cut)
	now := pipeline.Usage{Frames: packets - cut, Packets: packets, Bytes: bytes}
	now.Lost.Packets, now.Lost.Bytes = atomic.LoadUint64(&rest.LostPackets), atomic.LoadUint64(&rest.LostBytes)
	now.Lost.Frames = now.Lost.Packets - atomic.LoadUint64(&rest.LostCut)
	c.tables.Credit(in.Flow, int64(atomic.LoadUint64(&row.Used)), pipeline.Usage{
		Frames: now.Frames - in.credited.Frames, Packets: now.Packets - in.credited.Packets, Bytes: now.Bytes - in.credited.Bytes,
		Lost: pipeline.Lost{
			Frames: now.Lost.Frames - in.credited.Lost.Frames, Packets: now.Lost.Packets - in.credited.Lost.Packets, Bytes: now.Lost.Bytes - in.credited.Lost.Bytes,
		},
	})
	c.counters.Cached.Packets += now.Packets - in.credited.Packets
	c.counters.Cached.Bytes += now.Bytes - in.credited.Bytes
	in.credited = now
	if c.samples != nil {
		c.samples[in.slot].credited = now
	}
}

// Invalidate ends flows. All of them, after many changes between two frames that
// concern no entry: to decide on them again costs less than to ask each flow after
// each change.
func (c *cache) Invalidate(stale func(*pipeline.Flow) bool) {
	if c.asked += len(c.installed); c.asked > mostAsked {
		stale = func(*pipeline.Flow) bool { return true }
	}
	for _, in := range c.pending {
		if !in.over && stale(in.Flow) {
			c.cancel(in)
		}
	}
	c.end(func(in *installed) bool { return stale(in.Flow) })
}

// End ends flows.
func (c *cache) End(list []*pipeline.Flow) {
	gone := make([]*installed, 0, len(list))
	for _, f := range list {
		if in := f.Place.(*installed); in.placed {
			gone = append(gone, in)
		} else {
			c.cancel(in)
		}
	}
	c.takeOut(gone)
}

// cancel has a flow that is pending not be installed.
func (c *cache) cancel(in *installed) {
	in.over = true
	c.tables.Forget(in.Flow)
}

// end takes those out of the kernel that are stale.
func (c *cache) end(stale func(*installed) bool) {
	var gone []*installed
	for _, in := range c.installed {
		if stale(in) {
			gone = append(gone, in)
		}
	}
	c.takeOut(gone)
}

// takeOut takes flows out of the kernel.
func (c *cache) takeOut(gone []*installed) {
	if len(gone) == 0 {
		return
	}
	for _, in := range gone {
		atomic.StoreUint64(&c.flows[in.slot].Serial, 0)
	}
	for _, in := range gone {
		c.erase(in)
		delete(c.installed, in.key)
		c.bySlot[in.slot] = nil
	}
	c.settle()
	for _, in := range gone {
		c.credit(in)
		c.tables.Forget(in.Flow)
		atomic.AddUint32(&c.setting.Mask[in.key.mask].Used, ^uint32(0))
		c.free = append(c.free, in.slot)
	}
}

// settle waits until no program that has begun before runs any more.
func (c *cache) settle() {
	for i := range c.running {
		at := &c.running[i].OddInside
		for before := atomic.LoadUint64(at); before&1 != 0 && atomic.LoadUint64(at) == before; {
			runtime.Gosched()
		}
	}
}

// idle is after how long a flow leaves when there are so many: sooner when room for
// new ones gets scarce.
func idle(flows int) time.Duration {
	switch {
	case flows > maxFlows/8*7:
		return flowIdle / 10
	case flows > maxFlows/4*3:
		return flowIdle / 5
	case flows > maxFlows/2:
		return flowIdle / 2
	}
	return flowIdle
}

// sweep ends those of a part of the flows that were not used for a while. All have had
// their turn after a second, and no frame waits long meanwhile.
func (c *cache) sweep() {
	before := uint64(monotonic() - int64(idle(len(c.installed))))
	var gone []*installed
	for range (len(c.bySlot) + sweeps - 1) / sweeps {
		if c.hand++; c.hand >= len(c.bySlot) {
			c.hand = 0
		}
		if in := c.bySlot[c.hand]; in != nil && atomic.LoadUint64(&c.flows[in.slot].Used) < before {
			gone = append(gone, in)
		}
	}
	c.takeOut(gone)
}

// monotonic is the clock of programs.
func monotonic() int64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}
