package ofswitch

import (
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"sublet/datapath/kernel"
	"sublet/openflow/pipeline"
)

// samplesFile has, of every flow in the kernel, the frame that it was made of.
const samplesFile = "flows"

// sample is a frame, from which its flow is made again.
type sample struct {
	serial   uint64 // of the flow
	credited pipeline.Usage
	port     uint32
	size     uint32 // of the frame
	head     [128]byte
}

const portProgram = "ofswitch_port"

// keepFlows has flows go on without this process.
func (c *cache) keepFlows() error {
	b, err := mapFile(samplesFile, maxFlows*int(unsafe.Sizeof(sample{})))
	if err != nil {
		return err
	}
	c.memory = append(c.memory, b)
	c.samples = unsafe.Slice((*sample)(unsafe.Pointer(&b[0])), maxFlows)
	return nil
}

// predecessor is what another process has left on a device; nil: nothing.
func predecessor(device int) *ebpf.Program {
	found, err := link.QueryPrograms(link.QueryOptions{Target: device, Attach: ebpf.AttachTCXIngress})
	if err != nil {
		return nil
	}
	for _, a := range found.Programs {
		p, err := ebpf.NewProgramFromID(a.ID)
		if err != nil {
			continue
		}
		if info, err := p.Info(); err == nil && info.Name == portProgram {
			return p
		}
		p.Close()
	}
	return nil
}

// inherited is the maps of programs that were left on devices of this namespace, by
// name. They are not pinned: they go with the devices.
func inherited() (map[string]*ebpf.Map, error) {
	conn, err := kernel.Dial()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	links, err := conn.Links()
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		p := predecessor(l.Index)
		if p == nil {
			continue
		}
		defer p.Close()
		return mapsOf(p)
	}
	return nil, nil
}

func mapsOf(p *ebpf.Program) (map[string]*ebpf.Map, error) {
	info, err := p.Info()
	if err != nil {
		return nil, err
	}
	ids, _ := info.MapIDs()
	found := make(map[string]*ebpf.Map)
	for _, id := range ids {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			return nil, err
		}
		if info, err := m.Info(); err == nil {
			found[info.Name] = m
		}
	}
	return found, nil
}

// stay attaches a program so that it stays when this process ends, in the place of
// one that was left: no frame passes between the two.
func stay(index int, program *ebpf.Program) error {
	o := link.RawAttachProgramOptions{Target: index, Program: program, Attach: ebpf.AttachTCXIngress}
	if old := predecessor(index); old != nil {
		defer old.Close()
		o.Anchor = link.ReplaceProgram(old)
	}
	return link.RawAttachProgram(o)
}

// adopt takes over the flows of before: those that the tables would make again as
// they are. The others end.
func (c *cache) adopt() {
	for slot := range c.flows {
		if c.flows[slot].Serial != 0 {
			c.derive(uint32(slot)) // so that port NORMAL knows where stations are
		}
	}
	for slot := range c.flows {
		serial := c.flows[slot].Serial
		c.serial = max(c.serial, serial)
		if serial == 0 || serial != c.samples[slot].serial {
			continue
		}
		if in := c.again(uint32(slot)); in != nil {
			c.installed[in.key], c.bySlot[slot], in.placed, in.Flow.Place = in, in, true, in
			c.tables.Keep(in.Flow)
		}
	}
	kept := make(map[uint32]bool)
	for _, in := range c.installed {
		kept[in.slot] = true
	}
	for slot := range c.flows {
		if !kept[uint32(slot)] {
			atomic.StoreUint64(&c.flows[slot].Serial, 0)
		}
	}
	c.settle()
	c.recount(kept)
	c.leadOnlyTo(kept)
}

// derive is what the tables do to a flow's frame now; nil if that is no flow. Behind
// the headers frames are empty, and large ones shorter, which no flow depends on.
func (c *cache) derive(slot uint32) *pipeline.Flow {
	at := &c.samples[slot]
	frame := make([]byte, min(max(at.size, 14), 2048))
	copy(frame, at.head[:])
	f, cause := c.tables.Derive(int64(c.flows[slot].Used), at.port, frame)
	if cause != pipeline.CauseNone {
		return nil
	}
	return f
}

// again makes the flow of a slot anew; nil if it is another one now.
func (c *cache) again(slot uint32) *installed {
	row, at := &c.flows[slot], &c.samples[slot]
	f := c.derive(slot)
	if f == nil {
		return nil
	}
	in, ok := c.compile(f)
	if !ok || in.row.Steps != row.Steps || in.steps != c.rests[slot].Step || in.row.LeastTtl != row.LeastTtl || in.row.LeastLen != row.LeastLen || in.row.SumAt != row.SumAt || in.row.Udp != row.Udp {
		return nil
	}
	in.slot, in.credited = slot, at.credited
	for i := range c.setting.Mask {
		in.key = flowKey{words: in.words, mask: i, large: large(in.mask[:])}
		if c.setting.Mask[i].Words == in.mask && c.setting.Mask[i].Used > 0 && c.leads(in) {
			return in
		}
	}
	return nil
}

// recount says how many flows masks have, and which slots have none.
func (c *cache) recount(kept map[uint32]bool) {
	var used [len(flowsSetting{}.Mask)]uint32
	for key := range c.installed {
		used[key.mask]++
	}
	for i := range used {
		atomic.StoreUint32(&c.setting.Mask[i].Used, used[i])
	}
	c.free = c.free[:0]
	for slot := range uint32(len(c.flows)) {
		if at := uint32(len(c.flows)) - 1 - slot; !kept[at] {
			c.free = append(c.free, at)
		}
	}
}
