package channel

import (
	"slices"
	"sync"
	"sync/atomic"

	"sublet/openflow/of10"
	"sublet/openflow/of13"
)

// Datapath is what controllers' messages are for.
type Datapath interface {
	Do(m of13.Message) (reply of13.Message, err error)

	// Atomic makes changes by calls of Do in run, of which none stays if run fails.
	Atomic(run func() error) error
}

// Hub is the connections of one switch. Next, Handle and the sink's methods are
// called by whoever drives the switch; all else runs by itself.
type Hub struct {
	Auxiliary uint8 // connections beside the main one to each controller to which the switch connects

	// AuxiliaryUDP has those be datagrams: they are not encrypted, and may be lost. They are
	// for what controllers send again, or can do without.
	AuxiliaryUDP bool

	Least uint8 // version that is spoken; 0: any

	Near bool // controllers are tried again sooner: who knows when that is worth it calls Hurry

	Bundled *atomic.Int64 // bytes of messages in bundles; Hubs of one switch have one

	Most int64 // bytes of replies that may wait for all controllers together; 0: 64 MiB

	// Watch, if there is one, makes whoever drives the switch read and write what is
	// not encrypted: it has a descriptor watched for both, by edges, and what comes
	// of it told by Ready.
	Watch func(fd int) error

	notify func()
	done   chan struct{}
	pool   sync.Pool
	held   atomic.Int64 // bytes of replies that wait

	mu         sync.Mutex
	conns      []*Conn
	sources    []*Conn // those of which messages may wait, also after their end
	turn       int
	generation uint64
	generated  bool
	watched    map[int]*Conn // by descriptor
	touched    []*Conn       // with something to write; whoever drives the switch has it alone
	hurry      chan struct{} // closed by Hurry
	ended      map[Target]string
}

// NewHub makes a hub without connections. notify is called when there is something for Next.
func NewHub(notify func()) *Hub {
	return &Hub{notify: notify, Bundled: new(atomic.Int64), done: make(chan struct{}), watched: make(map[int]*Conn), hurry: make(chan struct{}), ended: make(map[Target]string)}
}

// buffer gives n bytes that Handle takes back.
func (h *Hub) buffer(n int) []byte {
	if b, ok := h.pool.Get().(*[]byte); ok && cap(*b) >= n {
		return (*b)[:n]
	}
	return make([]byte, n, max(n, 512))
}

func (h *Hub) free(raw []byte) { h.pool.Put(&raw) }

func (h *Hub) join(c *Conn) {
	h.mu.Lock()
	h.sources = append(h.sources, c)
	if c.main == nil {
		h.conns = append(h.conns, c)
	} else {
		c.main.beside++
	}
	h.mu.Unlock()
	h.notify()
}

func (h *Hub) leave(c *Conn) {
	h.mu.Lock()
	h.conns = slices.DeleteFunc(h.conns, func(x *Conn) bool { return x == c })
	if c.main != nil {
		c.main.beside--
	}
	h.mu.Unlock()
	close(c.inbox)
	h.notify()
}

// Connected is the number of controllers.
func (h *Hub) Connected() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		if !c.manages {
			n++
		}
	}
	return n
}

// Handle does what a message asks, and replies.
func (h *Hub) Handle(in Incoming, d Datapath) {
	if in.Conn.direct == nil {
		defer h.free(in.Raw)
	}
	head, m, err := in.Conn.wire.decode(in.Raw)
	var reply of13.Message
	if err == nil {
		reply, err = h.do(in.Conn, head.XID, m, d)
	}
	if features, ok := reply.(*of13.FeaturesReply); ok {
		features.Auxiliary = in.Conn.auxiliary
		if in.Conn.wire.version == of10.Version {
			reply, err = withPorts(features, d)
		}
	}
	switch {
	case err != nil:
		in.Conn.refuse(in.Raw, err)
	case reply != nil:
		in.Conn.reply(head.XID, reply)
	}
}

// controller is the main connection to its controller: that which has a role and
// gets asynchronous messages.
func (c *Conn) controller() *Conn {
	if c.main != nil {
		return c.main
	}
	return c
}

func (h *Hub) do(c *Conn, xid uint32, m of13.Message, d Datapath) (of13.Message, error) {
	if c.unreliable() && !overUDP(m.Type()) {
		return nil, of13.BadRequestBadType
	}
	switch m.Type() {
	case of13.TypeHello, of13.TypeError: // after the first hello they ask for nothing
		return nil, nil
	case of13.TypeEchoRequest:
		return &of13.Echo{Reply: true, Data: m.(*of13.Echo).Data}, nil
	case of13.TypeEchoReply:
		return nil, nil
	case of13.TypeBarrierRequest:
		return &of13.Plain{Kind: of13.TypeBarrierReply}, nil
	case of13.TypeRoleRequest:
		return h.changeRole(c.controller(), m.(*of13.Role))
	case of13.TypeMultipartRequest:
		if whole, err := c.gather(xid, m.(*of13.MultipartRequest)); err != nil || !whole {
			return nil, err
		}
	case of13.TypeExperimenter:
		return h.bundled(c, xid, m.(*of13.Experimenter), d)
	case of13.TypeGetAsyncRequest:
		return &c.controller().async, nil
	case of13.TypeSetAsync:
		async := &c.controller().async
		*async = *m.(*of13.Async)
		async.Kind = of13.TypeGetAsyncReply
		return nil, nil
	case of13.TypeFlowMod, of13.TypeGroupMod, of13.TypePortMod, of13.TypeTableMod, of13.TypeMeterMod, of13.TypePacketOut:
		if c.controller().role == of13.RoleSlave {
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
	h.tell(m.Reason, func(a *of13.Async) *[2]uint32 { return &a.PacketIn }, func(c *Conn) {
		if !m.Unmatched || c.wire.version == of10.Version {
			c.event(m)
		}
	})
}

// FlowRemoved tells those that want to know of an entry that is gone.
func (h *Hub) FlowRemoved(m *of13.FlowRemoved) {
	h.tell(m.Reason, func(a *of13.Async) *[2]uint32 { return &a.FlowRemove }, func(c *Conn) { c.reply(0, m) })
}

// PortStatus tells those that want to know of a port.
func (h *Hub) PortStatus(m *of13.PortStatus) {
	h.tell(m.Reason, func(a *of13.Async) *[2]uint32 { return &a.PortStatus }, func(c *Conn) { c.reply(0, m) })
}
