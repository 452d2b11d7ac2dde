package channel

import (
	"slices"
	"sync"

	"sublet/openflow/of13"
)

// inbox is how many messages wait for the switch at most.
const inbox = 256

// Datapath is what controllers' messages are for.
type Datapath interface {
	Do(m of13.Message) (reply of13.Message, err error)
}

// Hub is the connections of one switch. Handle and the sink's methods are called
// by whoever drives the switch; all else runs by itself.
type Hub struct {
	In     chan Incoming // to be given to Handle
	notify func()
	done   chan struct{}
	pool   sync.Pool

	mu         sync.Mutex
	conns      []*Conn
	generation uint64
	generated  bool
}

// NewHub makes a hub without connections. notify is called when something is in In.
func NewHub(notify func()) *Hub {
	return &Hub{In: make(chan Incoming, inbox), notify: notify, done: make(chan struct{})}
}

// buffer gives n bytes that Handle takes back.
func (h *Hub) buffer(n int) []byte {
	if b, ok := h.pool.Get().(*[]byte); ok && cap(*b) >= n {
		return (*b)[:n]
	}
	return make([]byte, n, max(n, 512))
}

func (h *Hub) join(c *Conn) {
	h.mu.Lock()
	h.conns = append(h.conns, c)
	h.mu.Unlock()
	h.notify()
}

func (h *Hub) leave(c *Conn) {
	h.mu.Lock()
	h.conns = slices.DeleteFunc(h.conns, func(x *Conn) bool { return x == c })
	h.mu.Unlock()
	h.notify()
}

// Connected is the number of controllers.
func (h *Hub) Connected() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.conns)
}

func (h *Hub) deliver(in Incoming) bool {
	select {
	case h.In <- in:
		h.notify()
		return true
	case <-h.done:
		return false
	}
}

// Handle does what a message asks, and replies.
func (h *Hub) Handle(in Incoming, d Datapath) {
	defer h.pool.Put(&in.Raw)
	head, m, err := in.Conn.decoder.Decode(in.Raw)
	var reply of13.Message
	if err == nil {
		reply, err = h.do(in.Conn, m, d)
	}
	switch {
	case err != nil:
		in.Conn.refuse(in.Raw, err)
	case reply != nil:
		in.Conn.reply(head.XID, reply)
	}
}

func (h *Hub) do(c *Conn, m of13.Message, d Datapath) (of13.Message, error) {
	switch m.Type() {
	case of13.TypeHello, of13.TypeError: // after the first hello they ask for nothing
		return nil, nil
	case of13.TypeBarrierRequest:
		return &of13.Plain{Kind: of13.TypeBarrierReply}, nil
	case of13.TypeRoleRequest:
		return h.changeRole(c, m.(*of13.Role))
	case of13.TypeGetAsyncRequest:
		return &c.async, nil
	case of13.TypeSetAsync:
		c.async = *m.(*of13.Async)
		c.async.Kind = of13.TypeGetAsyncReply
		return nil, nil
	case of13.TypeFlowMod, of13.TypeGroupMod, of13.TypePortMod, of13.TypeTableMod, of13.TypeMeterMod, of13.TypePacketOut:
		if c.role == of13.RoleSlave {
			return nil, of13.BadRequestIsSlave
		}
	}
	return d.Do(m)
}

// changeRole gives a controller a role. A new master makes the former one a slave.
func (h *Hub) changeRole(c *Conn, m *of13.Role) (of13.Message, error) {
	if m.Role > of13.RoleSlave {
		return nil, of13.RoleRequestFailedBadRole
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if m.Role >= of13.RoleMaster {
		if h.generated && int64(m.Generation-h.generation) < 0 {
			return nil, of13.RoleRequestFailedStale
		}
		h.generation, h.generated = m.Generation, true
	}
	for _, o := range h.conns {
		if m.Role == of13.RoleMaster && o.role == of13.RoleMaster {
			o.role = of13.RoleSlave
		}
	}
	if m.Role != of13.RoleNoChange {
		c.role = m.Role
	}
	generation := ^uint64(0)
	if h.generated {
		generation = h.generation
	}
	return &of13.Role{Reply: true, Role: c.role, Generation: generation}, nil
}

// tell sends an asynchronous message to the controllers whose masks have its reason.
func (h *Hub) tell(reason uint8, masks func(*of13.Async) *[2]uint32, send func(*Conn)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		slave := 0
		if c.role == of13.RoleSlave {
			slave = 1
		}
		if masks(&c.async)[slave]&(1<<reason) != 0 {
			send(c)
		}
	}
}

// PacketIn hands a packet to the controllers that want it.
func (h *Hub) PacketIn(m *of13.PacketIn) {
	h.tell(m.Reason, func(a *of13.Async) *[2]uint32 { return &a.PacketIn }, func(c *Conn) { c.event(m) })
}

// FlowRemoved tells those that want to know of an entry that is gone.
func (h *Hub) FlowRemoved(m *of13.FlowRemoved) {
	h.tell(m.Reason, func(a *of13.Async) *[2]uint32 { return &a.FlowRemove }, func(c *Conn) { c.reply(0, m) })
}

// PortStatus tells those that want to know of a port.
func (h *Hub) PortStatus(m *of13.PortStatus) {
	h.tell(m.Reason, func(a *of13.Async) *[2]uint32 { return &a.PortStatus }, func(c *Conn) { c.reply(0, m) })
}
