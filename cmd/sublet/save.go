package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"sublet/lease/api"
	"sublet/vnet"
	"sublet/vnet/file"
)

func (a *app) save() *cobra.Command {
	return &cobra.Command{
		Use:   "save NAME OUT",
		Short: "Save a network to an archive: its request, and what its nodes keep",
		Long: `Save a network to the file OUT (-: standard output): its request as it is now, what
nodes with state: keep have written (files of containers, disks of machines), and
the entries of its OpenFlow switches. sublet up --from OUT asks for it again.

A node stands still while its files are read, one node after another. For one instant
of all of them, let the network stand still before: sublet pause. OUT has its name
when it is whole; a save that fails leaves nothing.`,
		Example:           "  sublet save course course.tar.zst\n  sublet save course - | ssh elsewhere sublet up --from -",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: a.completeLease,
		RunE: func(c *cobra.Command, args []string) error {
			client, l, err := a.lookUp(c.Context(), args[0])
			if err != nil {
				return err
			}
			if args[1] == "-" {
				return a.writeSave(c.Context(), client, l, a.out)
			}
			return whole(args[1], func(w io.Writer) error { return a.writeSave(c.Context(), client, l, w) })
		},
	}
}

// whole makes a file that has its name once all of it is written, or none.
func whole(name string, fill func(io.Writer) error) error {
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return badInput{fmt.Errorf("%s is no file: name one", name)}
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return badInput{err}
	}
	err = fill(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// keepersOf are the nodes that have files which last, if the network has nodes now.
func keepersOf(l vnet.Lease) (names []string) {
	if l.State == vnet.Booked || l.State == vnet.Ended || over(l) != nil {
		return nil
	}
	for _, n := range l.Topology().All() {
		if n.Keeps() {
			names = append(names, n.Name)
		}
	}
	return names
}

// writeSave writes an archive of a network.
func (a *app) writeSave(ctx context.Context, client *api.Client, l vnet.Lease, out io.Writer) error {
	now := time.Now().UTC().Truncate(time.Second)
	w, err := newArchive(out, now)
	if err != nil {
		return err
	}
	about := savedNetwork{Format: savedForm, Version: savedVersion, Network: string(l.Request.Network), Saved: now, By: versionOf(), Nodes: keepersOf(l)}
	request, err := file.FormatRequest(again(l.Request, now))
	if err = errors.Join(err, w.json(savedAbout, about)); err != nil {
		return err
	}
	if err := w.text(savedRequest, request); err != nil {
		return err
	}
	for _, node := range about.Nodes {
		if err := saveNode(ctx, client, l.ID(), node, w); err != nil {
			return fmt.Errorf("save node %s: %w", node, err)
		}
	}
	if err := saveSwitches(ctx, client, l, w); err != nil {
		return err
	}
	return w.close()
}

func saveNode(ctx context.Context, client *api.Client, id vnet.LeaseID, node string, w *archiveWriter) error {
	kept, err := client.Kept(ctx, id, node)
	if err != nil {
		return err
	}
	defer kept.Close()
	return w.node(node, kept)
}

// saveSwitches adds the entries of OpenFlow switches, for who reads the archive.
func saveSwitches(ctx context.Context, client *api.Client, l vnet.Lease, w *archiveWriter) error {
	if l.State == vnet.Booked || l.State == vnet.Ended || over(l) != nil {
		return nil
	}
	for _, sw := range l.Topology().Switches {
		if sw.Kind != vnet.SwitchOpenFlow {
			continue
		}
		flows, err := client.Flows(ctx, l.ID(), sw.Name)
		if err == nil {
			err = w.json("switches/"+sw.Name+".json", flows)
		}
		if err != nil {
			return fmt.Errorf("save switch %s: %w", sw.Name, err)
		}
	}
	return nil
}
