package live

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"sublet/vxswitch"
)

// Status is what a hosting switch has counted.
type Status struct {
	Ports    []PortStatus   `json:"ports"`
	Switches []SwitchStatus `json:"virtual_switches"`
	Unknown  vxswitch.Count `json:"unknown"` // frames that no virtual switch claims
	Rounds   uint64         `json:"rounds"`
	Samples  uint64         `json:"samples"` // frames of turns that were timed
	Times    Times          `json:"times"`   // their sums
	Memory   MemoryStatus   `json:"memory"`
	CPU      time.Duration  `json:"cpu_ns"` // that the process has used
}

// MemoryStatus is the room for frames.
type MemoryStatus struct {
	Used int `json:"used_frames"`
	Made int `json:"made_frames"`
	Most int `json:"most_frames"`
}

// PortStatus is of a real port.
type PortStatus struct {
	Name string `json:"name"`
	Link int    `json:"link"` // index of its device in its namespace
	PortCounters
}

// SwitchStatus is of a virtual switch, and of each of its ports: what came in
// by it and what was queued for it.
type SwitchStatus struct {
	Name string `json:"name"`
	Counters
	Ports []SwitchPortStatus `json:"ports"`
}

// SwitchPortStatus is of a port of a virtual switch.
type SwitchPortStatus struct {
	Port string   `json:"port"`
	In   Counters `json:"in"`
	Out  Counters `json:"out"`
}

// Counters are the engine's, drops by the name of their cause. Bytes are those
// of frames on a wire.
type Counters struct {
	Offered   vxswitch.Count            `json:"offered"`
	Delivered vxswitch.Count            `json:"delivered"`
	Queued    vxswitch.Count            `json:"queued"`
	Dropped   map[string]vxswitch.Count `json:"dropped"`
	Faults    uint64                    `json:"faults"` // of its scheduler
}

func counters(c vxswitch.Counters) Counters {
	out := Counters{Offered: c.Offered, Delivered: c.Delivered, Queued: c.Queued, Faults: c.Faults, Dropped: map[string]vxswitch.Count{}}
	for cause, n := range c.Dropped {
		if n.Packets > 0 {
			out.Dropped[vxswitch.Cause(cause).String()] = n
		}
	}
	return out
}

// Status reads the counters. The loop's thread calls it (Do).
func (h *Host) Status() Status {
	st := Status{
		Unknown: h.s.Unknown().Lost(), Rounds: h.stages.rounds, Samples: h.stages.samples, Times: h.stages.times,
		Memory: MemoryStatus{h.slots.used, len(h.slots.all), most}, CPU: cpuTime(),
	}
	for _, p := range h.ports {
		if p != nil {
			p.count.Missed += p.missed()
			st.Ports = append(st.Ports, PortStatus{p.name, p.link, p.count})
		}
	}
	for _, id := range h.s.IDs() {
		v, _ := h.s.Virtual(id)
		w := SwitchStatus{Name: v.Name, Counters: counters(h.s.Counters(id))}
		for i, p := range v.Ports {
			if p.Physical >= 0 && h.ports[p.Physical] != nil {
				w.Ports = append(w.Ports, SwitchPortStatus{h.ports[p.Physical].name, counters(h.s.Input(id, i)), counters(h.s.Output(id, i))})
			}
		}
		st.Switches = append(st.Switches, w)
	}
	return st
}

// cpuTime is what this process has used of processors.
func cpuTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// Metrics writes st in the text form of Prometheus.
func (st Status) Metrics(to io.Writer) error {
	w := bufio.NewWriter(to)
	m := metrics{w}
	m.family("sublet_vxswitch_port_frames_total", "counter", "Frames read from and written to a real port.")
	for _, p := range st.Ports {
		m.line("sublet_vxswitch_port_frames_total", p.In.Packets, "port", p.Name, "direction", "in")
		m.line("sublet_vxswitch_port_frames_total", p.Out.Packets, "port", p.Name, "direction", "out")
	}
	m.family("sublet_vxswitch_port_unsent_total", "counter", "Frames that the device did not take.")
	for _, p := range st.Ports {
		m.line("sublet_vxswitch_port_unsent_total", p.OutErrors+p.Busy, "port", p.Name)
	}
	m.family("sublet_vxswitch_port_missed_total", "counter", "Frames that did not wait to be read.")
	for _, p := range st.Ports {
		m.line("sublet_vxswitch_port_missed_total", p.Missed, "port", p.Name)
	}
	m.family("sublet_vxswitch_cpu_seconds_total", "counter", "Processor time of the process.")
	m.line("sublet_vxswitch_cpu_seconds_total", st.CPU.Seconds())
	m.each(st, "offered_frames_total", "counter", "Frames for a port of a virtual switch.", func(c Counters) uint64 { return c.Offered.Packets })
	m.each(st, "delivered_frames_total", "counter", "Frames sent by a port of a virtual switch.", func(c Counters) uint64 { return c.Delivered.Packets })
	m.each(st, "delivered_bytes_total", "counter", "Their bytes, Ethernet header included.", func(c Counters) uint64 { return c.Delivered.Bytes })
	m.each(st, "queued_frames", "gauge", "Frames waiting for a port of a virtual switch.", func(c Counters) uint64 { return c.Queued.Packets })
	m.each(st, "queued_bytes", "gauge", "Their bytes.", func(c Counters) uint64 { return c.Queued.Bytes })
	m.drops(st)
	m.family("sublet_vxswitch_scheduler_faults_total", "counter", "Answers of a virtual switch's scheduler that could not be, or came late.")
	for _, v := range st.Switches {
		m.line("sublet_vxswitch_scheduler_faults_total", v.Faults, "switch", v.Name)
	}
	m.stages(st)
	return w.Flush()
}

type metrics struct{ w io.Writer }

func (m metrics) family(name, kind, help string) {
	fmt.Fprintf(m.w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// line writes a sample; labels are pairs.
func (m metrics) line(name string, value any, labels ...string) {
	fmt.Fprintf(m.w, "%s{", name)
	for i := 0; i < len(labels); i += 2 {
		if i > 0 {
			fmt.Fprint(m.w, ",")
		}
		fmt.Fprintf(m.w, "%s=%q", labels[i], labels[i+1])
	}
	fmt.Fprintf(m.w, "} %v\n", value)
}

// each writes one counter of every output of every virtual switch.
func (m metrics) each(st Status, name, kind, help string, of func(Counters) uint64) {
	name = "sublet_vxswitch_" + name
	m.family(name, kind, help)
	for _, v := range st.Switches {
		for _, p := range v.Ports {
			m.line(name, of(p.Out), "switch", v.Name, "port", p.Port)
		}
	}
}

func (m metrics) drops(st Status) {
	const name = "sublet_vxswitch_dropped_frames_total"
	m.family(name, "counter", "Frames dropped, by cause.")
	for _, v := range st.Switches {
		var causes []string
		for c := range v.Dropped {
			causes = append(causes, c)
		}
		slices.Sort(causes)
		for _, c := range causes {
			m.line(name, v.Dropped[c].Packets, "switch", v.Name, "cause", c)
		}
	}
	m.line(name, st.Unknown.Packets, "switch", "", "cause", vxswitch.Unknown.String())
}

func (m metrics) stages(st Status) {
	const name = "sublet_vxswitch_stage_seconds"
	m.family(name, "gauge", "Mean time for a frame in each stage of the time model, of turns that were timed.")
	if st.Samples == 0 {
		return
	}
	for _, g := range st.Times.stages() {
		m.line(name, g.sum.Seconds()/float64(st.Samples), "stage", g.name)
	}
}
