package vnode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sublet/datapath/kernel"
	"sublet/plan"
)

// stillKind is the directory that holds an empty file for each node that stands
// still: a node without processes does, too, and one whose user stops them all does
// not.
const stillKind = "still"

func (p *Part) stillPath(key string) string { return filepath.Join(p.host.Dir(stillKind), key) }

// freeze has what runs in a node stand still: programs with what starts them,
// commands, its machine. Daemons of routers, which are the provider's, go on, and
// so does the process that holds the node's namespaces.
func (p *Part) freeze(n plan.Pause) error {
	if is, ok := p.standing.Load(n.Key()); ok {
		is.(*standing).asked.Store(true)
	}
	return p.standStill(n)
}

// standStill notes that a node does, and has it.
func (p *Part) standStill(n plan.Pause) error {
	p.busy.RLock()
	defer p.busy.RUnlock()
	if err := kernel.MkdirAll(p.host.Dir(stillKind), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(p.stillPath(n.Key()), nil, 0o600); err != nil {
		return err
	}
	err := p.freezeAll(n.Key())
	if err != nil {
		err = fmt.Errorf("pause node %s: %w", n.Key(), err)
	}
	return err
}

// freezeTries bounds how often groups are frozen anew because a process went from
// one that was not frozen yet to one that was: the supervisor does, when it starts a
// program.
const freezeTries = 100

func (p *Part) freezeAll(key string) error {
	for range freezeTries {
		if err := p.eachRunning(key, kernel.Group.Freeze); err != nil {
			return err
		}
		if all, err := p.allFrozen(key); err != nil || all {
			return err
		}
	}
	return errors.New("processes of it go on")
}

// allFrozen says whether all that runs in a node stands still.
func (p *Part) allFrozen(key string) (bool, error) {
	all := true
	err := p.eachRunning(key, func(g kernel.Group) error {
		frozen, err := g.Frozen()
		all = all && frozen
		return err
	})
	return all, err
}

// thaw lets it go on.
func (p *Part) thaw(n plan.Pause) error {
	p.busy.RLock()
	defer p.busy.RUnlock()
	if err := p.eachRunning(n.Key(), kernel.Group.Thaw); err != nil {
		return fmt.Errorf("let node %s go on: %w", n.Key(), err)
	}
	return gone(os.Remove(p.stillPath(n.Key())))
}

// eachRunning does something to each group of a node's processes.
func (p *Part) eachRunning(key string, do func(kernel.Group) error) error {
	if err := p.host.LookGroups(); err != nil {
		return err
	}
	node := p.host.Group(key)
	names, err := node.Subs()
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == pauseGroup {
			continue
		}
		if failed := do(node.Sub(name)); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// observeStill reads which nodes stand still.
func (p *Part) observeStill(host *plan.Host) error {
	keys, err := p.host.Names(stillKind)
	if err != nil {
		return fmt.Errorf("list nodes that stand still: %w", err)
	}
	for _, key := range keys {
		id, node, ok := plan.ParseNamespace(key)
		if _, saved := p.standing.Load(key); !ok || saved {
			continue
		}
		is := plan.Pause{Lease: id, Node: node}
		all, err := p.allFrozen(key)
		if err != nil {
			host.Unseen(fmt.Errorf("look whether %s stands still: %w", key, err), id, plan.KindPause)
			continue
		}
		if !all {
			is = is.Partly()
		}
		host.Add(is)
	}
	return nil
}
