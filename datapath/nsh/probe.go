package nsh

import (
	"fmt"
	"net"
)

// Prober is the sender of frames that are no chain's: of one that a watched node
// returns it is counted that the node lives, and it is dropped.
var Prober = net.HardwareAddr{0x02, 0x53, 0x4c, 0x54, 0x52, 0x59}

// Bury says of a watched node that it is dead, which its packets alone do not while
// none come. What comes back from it revives it.
func (p *Part) Bury(fabric, function string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, err := p.records()
	if err != nil {
		return err
	}
	t, err := p.tables()
	if err != nil {
		return err
	}
	n, ok := all[fabric].Numbers[functionKey(function)]
	if !ok {
		return nil // it is gone
	}
	var l nshLife
	if err := t.table("lives").Lookup(n, &l); err != nil || l.Dead != 0 {
		return err
	}
	l.Dead, l.Deaths = 1, l.Deaths+1
	if err := t.table("lives").Put(n, l); err != nil {
		return fmt.Errorf("say that %s is dead: %w", function, err)
	}
	return nil
}
