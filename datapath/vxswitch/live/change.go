package live

import (
	"fmt"
	"reflect"
	"slices"

	"golang.org/x/sys/unix"

	"sublet/vnet"
	"sublet/vxswitch"
	"sublet/vxswitch/lookup"
)

// Change makes the hosting switch what c says, all of it or nothing. Ports and
// virtual switches that stay are not interrupted. The loop's thread calls it
// (Do), or New before there is one.
func (h *Host) Change(c *Config) error {
	text, err := c.Text() // before ports are put in order
	if err != nil {
		return err
	}
	at, err := h.place(c)
	if err != nil {
		return err
	}
	changes, err := h.changes(c, at)
	if err != nil {
		return err
	}
	opened, err := h.openNew(c, at)
	if err == nil {
		err = h.s.Apply(h.now(), changes...)
	}
	if err != nil {
		h.closeAll(opened)
		return err
	}
	for _, p := range opened {
		h.put(p)
	}
	h.closeGone(c)
	h.cfg, h.text = c, text
	h.own()
	return nil
}

// place gives every port of c its place: the one it has, or one that is free.
func (h *Host) place(c *Config) (map[string]int, error) {
	at := map[string]int{}
	used := [MaxPorts]bool{}
	for i, p := range h.ports {
		if p != nil {
			at[p.name], used[i] = i, true
		}
	}
	for _, p := range c.Ports {
		if _, ok := at[p.Name]; ok {
			continue
		}
		free := slices.Index(used[:], false)
		if free < 0 {
			return nil, fmt.Errorf("no room for port %s: a hosting switch has %d", p.Name, MaxPorts)
		}
		at[p.Name], used[free] = free, true
	}
	return at, nil
}

// changes are what makes the engine's switches those of c.
func (h *Host) changes(c *Config, at map[string]int) (list []vxswitch.Change, err error) {
	cfg, err := c.hosting(at)
	if err != nil {
		return nil, err
	}
	virtuals, err := c.virtuals(at, h.cfg)
	if err != nil {
		return nil, err
	}
	for i, p := range cfg.Ports {
		if !reflect.DeepEqual(p, h.s.Config().Ports[i]) {
			list = append(list, vxswitch.SetPort{Port: i, PhysicalPort: p})
		}
	}
	for _, v := range h.cfg.Switches {
		if c.virtualNamed(v.Name) == nil {
			list = append(list, vxswitch.Remove{Name: v.Name})
		}
	}
	for _, v := range virtuals {
		if id, ok := h.s.Find(v.Name); ok {
			was, _ := h.s.Virtual(id)
			list = append(list, vxswitch.Set{Virtual: keepLearned(v, was)})
		} else {
			list = append(list, vxswitch.Add{Virtual: v})
		}
	}
	return list, nil
}

// keepLearned keeps what a switch has learned, unless its ports changed.
func keepLearned(v, was vxswitch.Virtual) vxswitch.Virtual {
	before, now := learnedOf(was.Lookup), learnedOf(v.Lookup)
	if before != nil && now != nil && slices.EqualFunc(was.Ports, v.Ports, func(a, b vxswitch.Port) bool { return a.Physical == b.Physical }) {
		now.Keep(before)
	}
	return v
}

// learnedOf is what of a lookup learns; nil: nothing.
func learnedOf(f vxswitch.Forwarder) *lookup.Learning {
	switch l := f.(type) {
	case *lookup.Learning:
		return l
	case *lookup.Classifier:
		return l.Learning
	}
	return nil
}

// openNew opens the ports of c that are not open, or whose device was made
// anew since.
func (h *Host) openNew(c *Config, at map[string]int) (opened []*port, err error) {
	for _, p := range c.Ports {
		i := at[p.Name]
		if was := h.ports[i]; was != nil && !was.stale(p) {
			continue
		}
		d, err := h.open(p, h.portRate(c, p))
		if err != nil {
			return opened, fmt.Errorf("port %s: %w", p.Name, err)
		}
		fresh := &port{device: d, index: i, name: p.Name, owner: -1}
		opened = append(opened, fresh)
		for _, fd := range d.files() {
			if err := h.watch(fd, i); err != nil {
				return opened, err
			}
		}
	}
	return opened, nil
}

// put makes p the port at its place, instead of one whose device is gone.
func (h *Host) put(p *port) {
	if was := h.ports[p.index]; was != nil {
		p.count = was.count
		h.closePort(was)
	}
	h.ports[p.index] = p
	h.join(p)
}

// portRate is what may come in by p: its device should make no segments that
// are longer than a few milliseconds of it.
func (h *Host) portRate(c *Config, p PortConfig) vnet.Rate {
	least := vnet.Rate(p.Rate)
	for _, v := range c.Switches {
		for _, q := range v.Ports {
			if q.Port == p.Name {
				least = min(least, vnet.Rate(q.In))
			}
		}
	}
	return least
}

func (h *Host) closeAll(list []*port) {
	for _, p := range list {
		h.shut(p)
	}
}

func (h *Host) closeGone(c *Config) {
	for _, p := range h.ports {
		if p != nil && c.port(p.name) < 0 {
			h.closePort(p)
		}
	}
}

// closePort closes p; frames still queued for it go nowhere.
func (h *Host) closePort(p *port) {
	h.shut(p)
	h.ports[p.index] = nil
	h.hot = slices.DeleteFunc(h.hot, func(q *port) bool { return q == p })
}

func (h *Host) shut(p *port) {
	h.part(p)
	for _, ref := range p.queue {
		h.release(ref)
	}
	p.queue = p.queue[:0]
	for _, fd := range p.files() {
		unix.EpollCtl(h.epoll, unix.EPOLL_CTL_DEL, fd, nil)
	}
	p.close()
}
