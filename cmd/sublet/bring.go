package main

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"sublet/lease/api"
	"sublet/vnet"
)

// upFrom asks for a network that was saved, and brings what its nodes kept.
func (a *app) upFrom(ctx context.Context, o upOptions) error {
	in := a.in
	if o.from != "-" {
		f, err := os.Open(o.from)
		if err != nil {
			return badInput{err}
		}
		defer f.Close()
		in = f
	}
	r, err := openArchive(o.from, in)
	if err != nil {
		return err
	}
	defer r.close()
	name := o.name
	if name == "" {
		name = string(r.request.Network)
	}
	request, err := cloned(r.request, name, o.begin, o.length)
	if err != nil {
		return err
	}
	files := len(r.about.Nodes) > 0 && !o.bare
	if err := o.bringsTo(request, files); err != nil {
		return err
	}
	if !files {
		return a.admit(ctx, []vnet.Request{request}, o)
	}
	if o.from != "-" {
		switch err := r.readsToItsEnd(ctx); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return badInput{fmt.Errorf("%s: cannot be read to its end: %w", o.from, err)}
		}
	}
	o.then = func(ctx context.Context, client *api.Client, l vnet.Lease) error { return r.bring(ctx, client, l.ID()) }
	return a.admit(ctx, []vnet.Request{request}, o)
}

// readsToItsEnd reads an archive to its checksum, so that nothing is begun with one that was
// cut or has what it must not have. What comes by a pipe cannot be read twice.
func (r *archiveReader) readsToItsEnd(ctx context.Context) error {
	f, err := os.Open(r.name)
	if err != nil {
		return err
	}
	defer f.Close()
	return eachEntry(f, func(h *tar.Header, _ io.Reader) error { return cmp.Or(ctx.Err(), r.check(h)) })
}

// bringsTo refuses what leaves no time to bring files.
func (o upOptions) bringsTo(r vnet.Request, files bool) error {
	switch {
	case !files:
		return nil
	case r.Start.After(time.Now()):
		return badInput{errors.New("kept files are brought to a network that begins at once: leave out the start, or the files with --without-files")}
	case o.noWait:
		return badInput{errors.New("kept files are brought once the network runs: leave out --no-wait, or the files with --without-files")}
	}
	return nil
}

// bring brings what nodes kept, in the order of the archive.
func (r *archiveReader) bring(ctx context.Context, client *api.Client, id vnet.LeaseID) error {
	for {
		node, err := r.node()
		if err == nil && node != "" {
			err = r.bringNode(ctx, client, id, node)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		if node == "" {
			return nil
		}
	}
}

func (r *archiveReader) bringNode(ctx context.Context, client *api.Client, id vnet.LeaseID, node string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, in := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		err := client.SetKept(ctx, id, node, out)
		_ = out.CloseWithError(errAnswered) // nobody reads any more
		sent <- err
	}()
	read := r.copyNode(node, in)
	_ = in.CloseWithError(read) // nil: the end
	if read != nil && !errors.Is(read, errAnswered) {
		cancel() // nothing half is taken
		<-sent
		return fmt.Errorf("files of node %s: %w", node, read)
	}
	if err := <-sent; err != nil {
		return fmt.Errorf("bring the files of node %s: %w", node, err)
	}
	return nil
}

// errAnswered says that the server has answered.
var errAnswered = errors.New("the server reads no more")

// bringsFrom is what takes over the kept files of another network's nodes.
func bringsFrom(from vnet.Lease, nodes []string) func(context.Context, *api.Client, vnet.Lease) error {
	return func(ctx context.Context, client *api.Client, l vnet.Lease) error {
		for _, node := range nodes {
			if err := takeOver(ctx, client, from.ID(), l.ID(), node); err != nil {
				return fmt.Errorf("take over the files of node %s: %w", node, err)
			}
		}
		return nil
	}
}

func takeOver(ctx context.Context, client *api.Client, from, to vnet.LeaseID, node string) error {
	kept, err := client.Kept(ctx, from, node)
	if err != nil {
		return err
	}
	defer kept.Close()
	return client.SetKept(ctx, to, node, kept)
}
