package of13

import "encoding/binary"

// Desc names a switch. Texts are shorter than 256 bytes, the serial number than 32.
type Desc struct{ Manufacturer, Hardware, Software, Serial, Datapath string }

// Lifetime is how long something has been there.
type Lifetime struct{ Seconds, Nanos uint32 }

// FlowStats is an entry and what it has seen.
type FlowStats struct {
	Table          uint8
	Life           Lifetime
	Priority       uint16
	Idle, Hard     uint16
	Flags          uint16
	Cookie         uint64
	Packets, Bytes uint64
	Match          Match
	Instructions   []Instruction

	// Body is match and instructions as FlowBody has written them, for OpenFlow 1.3;
	// nil: they are still to be written.
	Body []byte
}

// FlowBody writes what in the statistics of an entry does not change by itself.
func FlowBody(m Match, instructions []Instruction) []byte {
	c := coder{write: true}
	m.layout(&c)
	list(&c, &instructions, (*coder).instruction)
	return c.b
}

// Aggregate is sums over entries.
type Aggregate struct {
	Packets, Bytes uint64
	Flows          uint32
}

// TableStats is what a table has seen.
type TableStats struct {
	Table            uint8
	Active           uint32
	Lookups, Matched uint64
	MaxEntries       uint32 // of OpenFlow 1.0, on no wire of 1.3
}

// PortStats is what a port has carried.
type PortStats struct {
	Port                                                 uint32
	RxPackets, TxPackets, RxBytes, TxBytes               uint64
	RxDropped, TxDropped, RxErrors, TxErrors             uint64
	RxFrameErrors, RxOverErrors, RxCRCErrors, Collisions uint64
	Life                                                 Lifetime
}

// QueueStats is what a queue has carried.
type QueueStats struct {
	Port, Queue              uint32
	Bytes, Packets, TxErrors uint64
	Life                     Lifetime
}

// Count is packets and bytes.
type Count struct{ Packets, Bytes uint64 }

// GroupStats is what a group has carried, by bucket.
type GroupStats struct {
	Group, References uint32
	Count             Count
	Life              Lifetime
	Buckets           []Count
}

// GroupDesc is a group as it was installed.
type GroupDesc struct {
	Kind    uint8
	Group   uint32
	Buckets []Bucket
}

// GroupFeatures is what groups can be; arrays are by type of group.
type GroupFeatures struct {
	Types, Capabilities uint32
	Max, Actions        [4]uint32
}

// MeterStats is what a meter has seen, and each band has caught.
type MeterStats struct {
	Meter, Flows uint32
	In           Count
	Life         Lifetime
	Bands        []Count
}

// MeterConfig is a meter as it was installed.
type MeterConfig struct {
	Flags uint16
	Meter uint32
	Bands []Band
}

// MeterFeatures is what meters can be.
type MeterFeatures struct {
	MaxMeters, BandTypes, Capabilities uint32
	MaxBands, MaxColor                 uint8
}

func (d *Desc) layout(c *coder) {
	for _, t := range []*string{&d.Manufacturer, &d.Hardware, &d.Software} {
		c.text(t, 256)
	}
	c.text(&d.Serial, 32)
	c.text(&d.Datapath, 256)
}

// told writes the statistics of an entry of which the body was written before.
func (c *coder) told(f *FlowStats) {
	const head = 48
	b := c.bytes(head)
	binary.BigEndian.PutUint16(b, uint16(head+len(f.Body)))
	b[2] = f.Table
	binary.BigEndian.PutUint32(b[4:], f.Life.Seconds)
	binary.BigEndian.PutUint32(b[8:], f.Life.Nanos)
	binary.BigEndian.PutUint16(b[12:], f.Priority)
	binary.BigEndian.PutUint16(b[14:], f.Idle)
	binary.BigEndian.PutUint16(b[16:], f.Hard)
	binary.BigEndian.PutUint16(b[18:], f.Flags)
	binary.BigEndian.PutUint64(b[24:], f.Cookie)
	binary.BigEndian.PutUint64(b[32:], f.Packets)
	binary.BigEndian.PutUint64(b[40:], f.Bytes)
	c.b = append(c.b, f.Body...)
}

func (c *coder) flowStats(f *FlowStats) {
	if c.write && f.Body != nil {
		c.told(f)
		return
	}
	c.sized(0, 56, false, func() {
		length := uint16(0)
		c.u16(&length)
		c.u8(&f.Table)
		c.pad(1)
		c.u32s(&f.Life.Seconds, &f.Life.Nanos)
		c.u16(&f.Priority)
		c.u16(&f.Idle)
		c.u16(&f.Hard)
		c.u16(&f.Flags)
		c.pad(4)
		c.u64s(&f.Cookie, &f.Packets, &f.Bytes)
		f.Match.layout(c)
		list(c, &f.Instructions, (*coder).instruction)
	})
}

func (a *Aggregate) layout(c *coder) {
	c.u64s(&a.Packets, &a.Bytes)
	c.u32(&a.Flows)
	c.pad(4)
}

func (c *coder) tableStats(t *TableStats) {
	c.u8(&t.Table)
	c.pad(3)
	c.u32(&t.Active)
	c.u64s(&t.Lookups, &t.Matched)
}

func (c *coder) portStats(p *PortStats) {
	c.u32(&p.Port)
	c.pad(4)
	c.u64s(&p.RxPackets, &p.TxPackets, &p.RxBytes, &p.TxBytes, &p.RxDropped, &p.TxDropped, &p.RxErrors, &p.TxErrors)
	c.u64s(&p.RxFrameErrors, &p.RxOverErrors, &p.RxCRCErrors, &p.Collisions)
	c.u32s(&p.Life.Seconds, &p.Life.Nanos)
}

func (c *coder) queueStats(q *QueueStats) {
	c.u32s(&q.Port, &q.Queue)
	c.u64s(&q.Bytes, &q.Packets, &q.TxErrors)
	c.u32s(&q.Life.Seconds, &q.Life.Nanos)
}

func (c *coder) count(n *Count) { c.u64s(&n.Packets, &n.Bytes) }

func (c *coder) groupStats(g *GroupStats) {
	c.sized(0, 40, false, func() {
		length := uint16(0)
		c.u16(&length)
		c.pad(2)
		c.u32s(&g.Group, &g.References)
		c.pad(4)
		c.count(&g.Count)
		c.u32s(&g.Life.Seconds, &g.Life.Nanos)
		list(c, &g.Buckets, (*coder).count)
	})
}

func (c *coder) groupDesc(g *GroupDesc) {
	c.sized(0, 8, false, func() {
		length := uint16(0)
		c.u16(&length)
		c.u8(&g.Kind)
		c.pad(1)
		c.u32(&g.Group)
		list(c, &g.Buckets, (*coder).bucket)
	})
}

func (g *GroupFeatures) layout(c *coder) {
	c.u32s(&g.Types, &g.Capabilities)
	for i := range g.Max {
		c.u32(&g.Max[i])
	}
	for i := range g.Actions {
		c.u32(&g.Actions[i])
	}
}

func (c *coder) meterStats(m *MeterStats) {
	c.sized(4, 40, false, func() {
		length := uint16(0)
		c.u32(&m.Meter)
		c.u16(&length)
		c.pad(6)
		c.u32(&m.Flows)
		c.count(&m.In)
		c.u32s(&m.Life.Seconds, &m.Life.Nanos)
		list(c, &m.Bands, (*coder).count)
	})
}

func (c *coder) meterConfig(m *MeterConfig) {
	c.sized(0, 8, false, func() {
		length := uint16(0)
		c.u16(&length)
		c.u16(&m.Flags)
		c.u32(&m.Meter)
		list(c, &m.Bands, (*coder).band)
	})
}

func (m *MeterFeatures) layout(c *coder) {
	c.u32s(&m.MaxMeters, &m.BandTypes, &m.Capabilities)
	c.u8(&m.MaxBands)
	c.u8(&m.MaxColor)
	c.pad(2)
}
