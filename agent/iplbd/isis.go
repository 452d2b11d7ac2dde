package iplbd

import (
	"bytes"
	"context"
	"log/slog"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// ISIS follows the link-state database of an isisd of FRR.
type ISIS struct {
	Dir    string // of its vty socket, as vtysh --vty_socket takes it
	Choice Choice
	Log    *slog.Logger
}

// source is what a reader has of it.
func (i ISIS) source() *reader {
	r := &reader{dir: i.Dir, daemon: "isisd", choice: i.Choice, log: i.Log}
	var known []byte // the last summary, without how long LSPs still hold
	r.ask = func(v *kernel.VTY) error {
		summary, err := v.Ask("show isis database")
		if err != nil {
			return err
		}
		if is := withoutHoldtimes(summary); !bytes.Equal(is, known) {
			if err := r.readISIS(v); err != nil {
				return err
			}
			known = is
		}
		return nil
	}
	return r
}

// readISIS reads the whole database.
func (r *reader) readISIS(v *kernel.VTY) error {
	names, err := v.Ask("show isis hostname")
	if err != nil {
		return err
	}
	text, err := v.Ask("show isis database detail")
	if err != nil {
		return err
	}
	db, err := parseISIS(names, text)
	if err == nil {
		r.became(db)
	}
	return err
}

// Run is OSPF.Run, with isisd.
func (i ISIS) Run(ctx context.Context, want func([]plan.Spread)) { i.source().run(ctx, want) }
