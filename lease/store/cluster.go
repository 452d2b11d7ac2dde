package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Server is one of the servers that share a store.
type Server struct {
	Name    string    `json:"name"`
	Address string    `json:"address,omitempty"` // HOST:PORT where it answers the others; "": nowhere
	Member  string    `json:"member,omitempty"`  // HOST:PORT of its member of the store; "": the store is external
	Leads   bool      `json:"-"`
	Since   time.Time `json:"since,omitzero"` // when it was added
}

// Errors of changes of who the servers are.
var (
	ErrNoMember = errors.New("not one of the store's servers")
	ErrMember   = errors.New("there is a server of that name")
)

// Cluster is a store of several servers as one of them sees it, leading or not.
type Cluster struct {
	config   Config
	client   *clientv3.Client
	embedded *embedded     // this server's member; nil: the store is external
	closing  chan struct{} // closed by Close
	failed   chan error

	mu      sync.Mutex
	leader  Server
	changed chan struct{} // closed and replaced when another leads
	rest    time.Time     // until when others had better lead
	removed chan struct{} // closed when this server is not one of them any more
}

// Join takes part in a store of several servers. The first one makes itself known; any
// further one must have been added before.
func Join(ctx context.Context, config Config) (*Cluster, error) {
	config.fill()
	c := &Cluster{config: config, changed: make(chan struct{}), removed: make(chan struct{}),
		closing: make(chan struct{}), failed: make(chan error, 1)}
	if config.external() {
		if err := c.reach(ctx); err != nil {
			return nil, err
		}
		return c, nil
	}
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// reach takes part in an external store.
func (c *Cluster) reach(ctx context.Context) (err error) {
	if err = c.config.untrusted(ctx); err != nil {
		return err
	}
	if c.client, err = connect(c.config); err != nil {
		return err
	}
	if err = c.enter(ctx); err != nil {
		c.client.Close()
	}
	return err
}

// begin takes part by a member of this server's own.
func (c *Cluster) begin(ctx context.Context) (err error) {
	if c.embedded, err = startMember(ctx, c.config); err != nil {
		return err
	}
	c.client = c.embedded.client()
	if err = c.takePart(ctx); err == nil {
		err = c.enter(ctx)
	}
	if err == nil {
		err = c.advertise(ctx)
	}
	if err != nil {
		c.client.Close()
		c.embedded.stop()
		return err
	}
	go c.lookAfter()
	return nil
}

// enter makes sure that this server is one of the store's.
func (c *Cluster) enter(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	self := Server{Name: c.config.Name, Address: c.config.Address, Member: c.config.Member, Since: time.Now().UTC()}
	if err := c.found(ctx, self); err != nil {
		return err
	}
	servers, err := c.Servers(ctx)
	if err != nil {
		return err
	}
	if len(servers) == 0 {
		return fmt.Errorf("%s has a store of its own, which --join would leave: move it away, or leave --join out", c.config.Dir)
	}
	for _, s := range servers {
		if s.Name == self.Name && s.Address != self.Address {
			return fmt.Errorf("server %s is known at %q, not at %q: state that with --listen, or add this one under another name", s.Name, s.Address, self.Address)
		}
		if s.Name == self.Name && s.Member != self.Member {
			return fmt.Errorf("the member of server %s is known at %q, not at %q: state that with --member, or add this one under another name", s.Name, s.Member, self.Member)
		}
		if s.Name == self.Name {
			return nil
		}
	}
	return fmt.Errorf("%s is %w: add it first with `sublet servers add %[1]s %[3]s`", self.Name, ErrNoMember, self.Address)
}

// found makes a server known that is the first one, unless it was to join others.
func (c *Cluster) found(ctx context.Context, self Server) error {
	if c.config.Members != nil {
		return nil
	}
	text, err := json.Marshal(self)
	if err != nil {
		return err
	}
	none := clientv3.Compare(clientv3.CreateRevision(c.prefix()), "=", 0).WithPrefix()
	if _, err := c.client.Txn(ctx).If(none).Then(clientv3.OpPut(c.prefix()+self.Name, string(text))).Commit(); err != nil {
		return fmt.Errorf("reach the store at %s: %w", strings.Join(c.config.Endpoints, ","), explain(err))
	}
	return nil
}

func (c *Cluster) prefix() string { return c.config.Prefix + "/" + serversKey }

// Name is this server's.
func (c *Cluster) Name() string { return c.config.Name }

// Own says that the servers have a member of the store each.
func (c *Cluster) Own() bool { return c.embedded != nil }

// Close ends taking part.
func (c *Cluster) Close() error {
	close(c.closing)
	if c.embedded == nil {
		return c.client.Close()
	}
	c.awaitRemoval()
	err := c.client.Close()
	c.embedded.stop()
	return err
}

// Lead waits until this server leads.
func (c *Cluster) Lead(ctx context.Context) (*Store, error) {
	c.rested(ctx)
	known := newMirror(c.client, c.config)
	s, err := campaign(ctx, c.client, c.embedded, c.config)
	if err != nil {
		known.stop()
		return nil, err
	}
	s.mirror = known
	if c.embedded != nil {
		go c.keepMembers(s)
		go c.keepFast(s)
	}
	return s, nil
}

// Servers lists the store's servers by name.
func (c *Cluster) Servers(ctx context.Context) ([]Server, error) {
	answer, err := c.client.Get(ctx, c.prefix(), clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("read who the servers are: %w", explain(err))
	}
	leader, _ := c.Leader()
	var servers []Server
	for _, kv := range answer.Kvs {
		var s Server
		if err := json.Unmarshal(kv.Value, &s); err != nil {
			return nil, fmt.Errorf("read who the servers are: %s: %w", kv.Key, err)
		}
		s.Leads = s.Name == leader.Name
		servers = append(servers, s)
	}
	return servers, nil
}

// Leader is who leads, with no name while nobody is known to; changed is closed
// when that is another.
func (c *Cluster) Leader() (leader Server, changed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leader, c.changed
}

// Gone ends another server's leadership before it expires. Nothing can go wrong by
// it, since a server that leads all the same writes nothing any more.
func (c *Cluster) Gone(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	answer, err := c.client.Get(ctx, c.config.Prefix+"/leader/", clientv3.WithFirstCreate()...)
	if err != nil {
		return explain(err)
	}
	for _, kv := range answer.Kvs {
		var leader Server
		if err := json.Unmarshal(kv.Value, &leader); err != nil || leader.Name != name || kv.Lease == 0 {
			continue
		}
		if _, err := c.client.Revoke(ctx, clientv3.LeaseID(kv.Lease)); err != nil {
			return fmt.Errorf("end the leadership of %s: %w", name, explain(err))
		}
	}
	return nil
}

// Removed is closed when this server is not one of the store's any more.
func (c *Cluster) Removed() <-chan struct{} { return c.removed }

// Follow keeps to what the store says of leader and servers, until ctx ends.
func (c *Cluster) Follow(ctx context.Context) {
	for ctx.Err() == nil {
		watching, stop := context.WithCancel(clientv3.WithRequireLeader(ctx))
		if err := c.follow(watching); err != nil && ctx.Err() == nil {
			c.setLeader(Server{}) // which one it is now cannot be known
			c.config.Logger.Warn("the store cannot be followed", "error", err)
		}
		stop()
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// lookEvery is how often who leads is read though nothing was said to be different: a
// watch does not notice that its connection carries nothing any more.
const lookEvery = 500 * time.Millisecond

// follow reads who leads at each change of the election or of the servers.
func (c *Cluster) follow(ctx context.Context) error {
	election := c.config.Prefix + "/leader/"
	first, err := c.look(ctx, election)
	if err != nil {
		return err
	}
	of := c.client.Watch(ctx, election, clientv3.WithPrefix(), clientv3.WithRev(first+1))
	members := c.client.Watch(ctx, c.prefix()+c.config.Name, clientv3.WithRev(first+1))
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for {
		ok := true
		select {
		case _, ok = <-of:
		case _, ok = <-members:
		case <-again.C:
		case <-ctx.Done():
			return nil
		}
		if !ok {
			return errors.New("the watch ended")
		}
		if _, err := c.look(ctx, election); err != nil {
			return err
		}
	}
}

// look reads who leads, the oldest candidate, and whether this server still takes part.
func (c *Cluster) look(ctx context.Context, election string) (revision int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	answer, err := c.client.Txn(ctx).Then(clientv3.OpGet(election, clientv3.WithFirstCreate()...),
		clientv3.OpGet(c.prefix()+c.config.Name, clientv3.WithCountOnly())).Commit()
	if err != nil {
		return 0, explain(err)
	}
	var leader Server
	for _, kv := range answer.Responses[0].GetResponseRange().Kvs {
		if err := json.Unmarshal(kv.Value, &leader); err != nil {
			return 0, fmt.Errorf("read who leads: %w", err)
		}
	}
	c.setLeader(leader)
	if answer.Responses[1].GetResponseRange().Count == 0 {
		c.leave()
	}
	return answer.Header.Revision, nil
}

func (c *Cluster) setLeader(s Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s == c.leader {
		return
	}
	c.leader = s
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Cluster) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.removed:
	default:
		close(c.removed)
	}
}

// AddServer lets a further server take part, in place of another one unless
// replaces is "".
func (c *Cluster) AddServer(ctx context.Context, s Server, replaces string) error {
	s.Since = time.Now().UTC()
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	conditions := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(c.prefix()+s.Name), "=", 0)}
	changes := []clientv3.Op{clientv3.OpPut(c.prefix()+s.Name, string(text))}
	if replaces != "" {
		conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(c.prefix()+replaces), ">", 0))
		changes = append(changes, clientv3.OpDelete(c.prefix()+replaces))
	}
	answer, err := c.client.Txn(ctx).If(conditions...).Then(changes...).Else(clientv3.OpGet(c.prefix() + s.Name)).Commit()
	switch {
	case err != nil:
		return fmt.Errorf("add server %s: %w", s.Name, explain(err))
	case answer.Succeeded && replaces == c.config.Name:
		return nil // whoever leads next changes the members
	case answer.Succeeded:
		return c.follows(ctx)
	case len(answer.Responses[0].GetResponseRange().Kvs) > 0:
		return fmt.Errorf("%w: %s", ErrMember, s.Name)
	}
	return fmt.Errorf("%s is %w", replaces, ErrNoMember)
}

// follows makes the store's members follow the servers, of which another attempt is made
// each second.
func (c *Cluster) follows(ctx context.Context) error {
	if c.embedded == nil {
		return nil
	}
	if err := c.reconcile(ctx); err != nil {
		c.config.Logger.Warn("the store's members are not the servers yet", "because", err)
	}
	return nil
}

// RemoveServer ends a server's taking part.
func (c *Cluster) RemoveServer(ctx context.Context, name string) error {
	answer, err := c.client.Delete(ctx, c.prefix()+name)
	switch {
	case err != nil:
		return fmt.Errorf("remove server %s: %w", name, explain(err))
	case answer.Deleted == 0:
		return fmt.Errorf("%s is %w", name, ErrNoMember)
	case name == c.config.Name:
		return nil // whoever leads next ends its membership
	}
	return c.follows(ctx)
}
