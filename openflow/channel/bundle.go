package channel

import (
	"bytes"

	"sublet/openflow/of13"
)

const (
	maxBundles = 16       // of one connection
	maxBundled = 16 << 20 // bytes of messages in them
	allBundled = 32 << 20 // of all connections of a switch
)

// bundle is messages that take effect together.
type bundle struct {
	flags    uint16
	closed   bool
	messages [][]byte
}

// bundled deals with an experimenter message, which is about a bundle or refused.
func (h *Hub) bundled(c *Conn, xid uint32, m *of13.Experimenter, d Datapath) (of13.Message, error) {
	b, err := m.Bundle()
	switch {
	case err != nil:
		return nil, err
	case c.controller().role == of13.RoleSlave:
		return nil, of13.BadRequestIsSlave
	case b.Flags&^(of13.BundleAtomic|of13.BundleOrdered) != 0:
		return nil, of13.BundleFailedBadFlags
	case b.Add:
		return nil, c.addToBundle(xid, &b)
	}
	if err := c.controlBundle(&b, d); err != nil {
		return nil, err
	}
	return of13.Bundle{ID: b.ID, Kind: b.Kind + 1, Flags: b.Flags}.Experimenter(), nil
}

// openBundle begins a bundle. One that has the number already is discarded.
func (c *Conn) openBundle(b *of13.Bundle) error {
	switch old := c.bundles[b.ID]; {
	case old != nil:
		c.discard(b.ID)
		return of13.BundleFailedExists
	case len(c.bundles) >= maxBundles:
		return of13.BundleFailedOutOf
	case c.bundles == nil:
		c.bundles = make(map[uint32]*bundle)
	}
	c.bundles[b.ID] = &bundle{flags: b.Flags}
	return nil
}

func (c *Conn) discard(id uint32) {
	for _, raw := range c.bundles[id].messages {
		c.bundledBytes -= len(raw)
		c.hub.Bundled.Add(-int64(len(raw)))
	}
	delete(c.bundles, id)
}

// addToBundle adds a message, and opens the bundle if it is not there. What is
// wrong with the message by itself is told now.
func (c *Conn) addToBundle(xid uint32, b *of13.Bundle) error {
	if c.bundles[b.ID] == nil {
		if err := c.openBundle(b); err != nil {
			return err
		}
	}
	to := c.bundles[b.ID]
	head := of13.ReadHeader(b.Message)
	switch {
	case to.closed:
		return of13.BundleFailedClosed
	case to.flags != b.Flags:
		return of13.BundleFailedBadFlags
	case head.XID != xid:
		return of13.BundleFailedMsgBadXID
	case class(head.Type) != classChange || head.Type == of13.TypeExperimenter:
		return of13.BundleFailedMsgUnsup
	case c.bundledBytes+len(b.Message) > maxBundled, int(c.hub.Bundled.Load())+len(b.Message) > allBundled:
		return of13.BundleFailedTooMany
	}
	message := bytes.Clone(b.Message)
	if _, _, err := c.wire.decode(message); err != nil {
		return err
	}
	to.messages = append(to.messages, message)
	c.bundledBytes += len(message)
	c.hub.Bundled.Add(int64(len(message)))
	return nil
}

func (c *Conn) controlBundle(b *of13.Bundle, d Datapath) error {
	if b.Kind == of13.BundleOpen {
		return c.openBundle(b)
	}
	on := c.bundles[b.ID]
	switch {
	case b.Kind != of13.BundleClose && b.Kind != of13.BundleCommit && b.Kind != of13.BundleDiscard:
		return of13.BundleFailedBadType
	case on == nil:
		return of13.BundleFailedBadID
	case on.flags != b.Flags && b.Kind != of13.BundleDiscard:
		return of13.BundleFailedBadFlags
	case b.Kind == of13.BundleClose && on.closed:
		return of13.BundleFailedClosed
	case b.Kind == of13.BundleClose:
		on.closed = true
		return nil
	}
	defer c.discard(b.ID)
	if b.Kind == of13.BundleCommit {
		return d.Atomic(func() error { return c.commit(on, d) })
	}
	return nil
}

// commit does what a bundle's messages ask, up to the first one that is refused.
func (c *Conn) commit(b *bundle, d Datapath) error {
	for _, raw := range b.messages {
		_, m, err := c.wire.decode(raw)
		if err == nil {
			_, err = d.Do(m)
		}
		if err != nil {
			c.refuse(raw, err)
			return of13.BundleFailedMsgFailed
		}
	}
	return nil
}
