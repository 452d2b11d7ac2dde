package channel

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"time"

	"sublet/openflow/of10"
	"sublet/openflow/of13"
)

// AsksStatus says whether a request asks for what a switch tells of itself.
func AsksStatus(m of13.Message) bool {
	_, ok := asks(m, KindStatus)
	return ok
}

// StatusReply has it.
func StatusReply(status any) (of13.Message, error) { return answer(KindStatus, status) }

// Status asks the switch for it.
func (c *Client) Status(status any) error { return c.own(KindStatus, nil, status) }

// Peer is a main connection to a controller.
type Peer struct {
	Target  Target // that the switch connects to, or listens at
	Address string // the controller's
	Role    string
	Version string
	Since   time.Time
	Beside  int    // auxiliary connections that stand
	Unread  uint64 // packet-ins that were lost because it does not read
}

// Peers lists the controllers that are connected. Whoever drives the switch calls it.
func (h *Hub) Peers() (list []Peer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		if !c.manages {
			list = append(list, Peer{
				Target: c.target, Address: c.address, Role: roleNames[c.role], Version: versionNames[c.wire.version], Since: c.since, Beside: c.beside, Unread: c.Dropped.Load(),
			})
		}
	}
	return list
}

var (
	roleNames    = map[uint32]string{of13.RoleEqual: "equal", of13.RoleMaster: "master", of13.RoleSlave: "slave"}
	versionNames = map[uint8]string{of13.Version: "1.3", of10.Version: "1.0"}
)

// Why says why the last connection to a target, or try to connect, ended; empty if none has.
func (h *Hub) Why(t Target) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended[t]
}

// note keeps why one ended.
func (h *Hub) note(t Target, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended[t] = reason(err)
}

// reason is what an error of the network means, without where it came from.
func reason(err error) string {
	var number syscall.Errno
	var network net.Error
	switch {
	case errors.As(err, &number):
		return number.Error()
	case errors.As(err, &network) && network.Timeout():
		return "no answer in time"
	case errors.Is(err, net.ErrClosed):
		return "closed"
	}
	return err.Error()
}

// String is how requests, and Open vSwitch, write a target.
func (t Target) String() string {
	kind := map[bool]string{false: "tcp:", true: "ssl:"}[t.Secure]
	if t.Passive {
		kind = "p" + kind
	}
	return kind + strings.TrimPrefix(t.Address, ":")
}
