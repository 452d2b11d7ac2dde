package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/server/v3/embed"
	"golang.org/x/sys/unix"

	"sublet/vnet"
)

// Timing of members in one cluster. A member that stands still may lead the store as well
// as the servers. The others then elect one in up to twice memberElection, which grants
// all leases anew, and for memberElection longer: all that must end within the three
// seconds in which another server is to lead.
const (
	memberTick     = 80          // ms between signs of life of the member that leads
	memberElection = 400         // ms without one until others stand for election
	memberTTL      = time.Second // the least that etcd grants with these
)

const (
	// keepEvery is how often a member is looked after, and the list of all of them.
	keepEvery = time.Second
	// mostLearners bounds the members that do not have all of the store yet.
	mostLearners = 4
	// lastLook is how long a server that was removed stays a member at most, so that the
	// others have the majority without which they cannot do without it. etcd removes none
	// until all that are needed have been connected for five seconds.
	lastLook = time.Minute
	// probeEvery is how often who leads tries how fast its disk is, and slowDisk from when
	// another had better lead: its member would not lead the store any more, either.
	probeEvery = 500 * time.Millisecond
	slowDisk   = memberElection * time.Millisecond
	// slowRest is how long a server with a slow disk leaves leading to others, and
	// slowAgain how long it leads then, since their disks may be as slow.
	slowRest  = 5 * time.Second
	slowAgain = time.Minute
	// joinAgain is how long an empty member waits before it tries again to take part.
	joinAgain = 300 * time.Millisecond
)

// amongOthers makes the configuration that of a member of a cluster.
func (e *embedded) amongOthers(c *embed.Config, config Config) {
	own := memberURL(config.Member)
	c.Name = config.Name
	c.AdvertisePeerUrls = []url.URL{own}
	c.ListenPeerUrls = []url.URL{listenURL(own)}
	c.PeerTLSInfo = transport.TLSInfo{CertFile: config.Cert, KeyFile: config.Key, TrustedCAFile: config.CA, ClientCertAuth: true,
		AllowedCNs: []string{vnet.OperatorName}, SkipClientSANVerify: true}
	c.TickMs, c.ElectionMs = memberTick, memberElection
	c.MaxLearners = mostLearners
	c.InitialCluster = config.Name + "=" + own.String()
	c.InitialClusterToken = rand.Text()
	if len(e.joins) > 0 {
		c.ClusterState = embed.ClusterStateFlagExisting
		c.InitialCluster = ""
		for i, s := range e.joins {
			if i > 0 {
				c.InitialCluster += ","
			}
			at := memberURL(s.Member)
			c.InitialCluster += s.Name + "=" + at.String()
		}
	}
}

func memberURL(address string) url.URL { return url.URL{Scheme: "https", Host: address} }

// listenURL is where a member listens: etcd takes no names there.
func listenURL(own url.URL) url.URL {
	if net.ParseIP(own.Hostname()) != nil {
		return own
	}
	if found, err := net.LookupIP(own.Hostname()); err == nil && len(found) > 0 {
		own.Host = net.JoinHostPort(found[0].String(), own.Port())
	}
	return own
}

// initialized says that a directory holds a member's log already.
func initialized(dir string) bool {
	logs, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	return err == nil && len(logs) > 0
}

// startMember starts this server's member of the store. An empty one asks who the
// others are, as long as they do not expect it yet.
func startMember(ctx context.Context, config Config) (*embedded, error) {
	if config.Members == nil || initialized(config.Dir) {
		return startEmbedded(config, nil)
	}
	told := false
	for until := time.Now().Add(startTimeout); ; told = true {
		servers, err := config.Members(ctx)
		if err != nil {
			return nil, err
		}
		self := slices.IndexFunc(servers, func(s Server) bool { return s.Name == config.Name })
		if self < 0 {
			return nil, fmt.Errorf("%s is %w: add it first with `sublet servers add %[1]s %[3]s --member %[4]s`", config.Name, ErrNoMember, config.Address, config.Member)
		}
		if at := servers[self]; at.Member != config.Member || at.Address != config.Address {
			return nil, fmt.Errorf("server %s is known at %q and its member at %q, not at %q and %q: state those with --listen and --member, or add this one under another name",
				config.Name, at.Address, at.Member, config.Address, config.Member)
		}
		own, err := startEmbedded(config, servers)
		if err == nil || initialized(config.Dir) || time.Now().After(until) {
			return own, err
		}
		if !told {
			config.Logger.Info("waits until the other members expect this one", slog.Any("because", err))
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(joinAgain):
		}
	}
}

// takePart makes a member that started one of those that decide.
func (c *Cluster) takePart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	etcd := c.embedded.etcd.Server
	for etcd.IsLearner() {
		if _, err := c.client.MemberPromote(ctx, uint64(etcd.MemberID())); err == nil {
			break
		} else if ctx.Err() != nil {
			return fmt.Errorf("take part in the store: the others do not take this member in: %w", err)
		}
		time.Sleep(joinAgain / 3)
	}
	// A server that was alone has no session that its leadership would end with.
	if _, err := c.client.Delete(ctx, c.config.Prefix+"/leader/embedded"); err != nil {
		return fmt.Errorf("end the leadership of a server that was alone: %w", explain(err))
	}
	return nil
}

// advertise tells the others where this member answers, which one that was alone did
// nowhere.
func (c *Cluster) advertise(ctx context.Context) error {
	own := memberURL(c.config.Member)
	answer, err := c.client.MemberList(ctx)
	if err != nil {
		return fmt.Errorf("read who the store's members are: %w", explain(err))
	}
	for _, m := range answer.Members {
		if m.ID == uint64(c.embedded.etcd.Server.MemberID()) && !slices.Contains(m.PeerURLs, own.String()) {
			if _, err := c.client.MemberUpdate(ctx, m.ID, []string{own.String()}); err != nil {
				return fmt.Errorf("say where this member of the store answers: %w", explain(err))
			}
		}
	}
	return nil
}

// Failed tells that this server cannot take part any more.
func (c *Cluster) Failed() <-chan error { return c.failed }

func (c *Cluster) fail(err error) {
	select {
	case c.failed <- err:
	default:
	}
}

// lookAfter keeps this server's member as long as it can be one.
func (c *Cluster) lookAfter() {
	every := time.NewTicker(keepEvery)
	defer every.Stop()
	for {
		select {
		case err := <-c.embedded.etcd.Err():
			c.fail(fmt.Errorf("the store ended: %w", err))
			return
		case <-c.embedded.etcd.Server.StopNotify():
			c.fail(errors.New("the store ended: its member was removed"))
			return
		case <-c.closing:
			return
		case <-every.C:
		}
		if err := c.embedded.makeRoom(c.config.floor(), 0); err != nil && c.others() {
			c.fail(fmt.Errorf("%w: this server ends, so that another one leads; make room and start it again", err))
			return
		}
		c.embedded.shrink(c.config.Quota)
	}
}

// others says that the store goes on without this server's member.
func (c *Cluster) others() bool {
	voters := 0
	for _, m := range c.embedded.etcd.Server.Cluster().Members() {
		if !m.IsLearner {
			voters++
		}
	}
	return voters > 2
}

// shrink gives the database's unused room back before it reaches its quota: who leads
// can do that for its own member only.
func (e *embedded) shrink(quota int64) {
	db := e.etcd.Server.Backend()
	if db.Size() < quota/4*3 || db.SizeInUse() > quota/2 || time.Since(e.shrunk) < time.Minute {
		return
	}
	e.shrunk = time.Now()
	_ = db.Defrag() // the quota tells, if it was in vain
}

// keepFast lets another server lead when this one's disk is slow.
func (c *Cluster) keepFast(s *Store) {
	every := time.NewTicker(probeEvery)
	defer every.Stop()
	for {
		select {
		case <-s.Deposed():
			return
		case <-c.closing:
			return
		case <-every.C:
		}
		took := make(chan error, 1)
		go func() { took <- c.embedded.probe() }()
		select {
		case err := <-took:
			if err != nil && !errors.Is(err, unix.ENOSPC) {
				c.config.Logger.Warn("the store's disk cannot be written", slog.Any("because", err))
			}
			continue
		case <-time.After(slowDisk):
		}
		if c.yield(time.Now()) {
			c.config.Logger.Warn("the store's disk is slow: another server had better lead", slog.Duration("longer than", slowDisk))
			_ = c.embedded.etcd.Server.TryTransferLeadershipOnShutdown() // of the members, if it has that; else they elect
			s.leader.abandon()
			return
		}
		<-took
	}
}

// yield says whether another server is to lead now, and has this one rest then.
func (c *Cluster) yield(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.mayYield(now) || !c.others() {
		return false
	}
	c.rest = now.Add(slowRest)
	return true
}

// mayYield says that this server has not yielded a short time ago.
func (c *Cluster) mayYield(now time.Time) bool { return !now.Before(c.rest.Add(slowAgain)) }

// Rests says that this server has let others lead, and does not stand for election.
func (c *Cluster) Rests() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.rest)
}

// rested waits until a server with a slow disk may lead again.
func (c *Cluster) rested(ctx context.Context) {
	c.mu.Lock()
	rest := time.Until(c.rest)
	c.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(rest):
	}
}

// probe writes something to the store's disk.
func (e *embedded) probe() error {
	f, err := os.OpenFile(filepath.Join(e.dir, "probe"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(time.Now().UTC().Format(time.RFC3339Nano)); err != nil {
		return err
	}
	return unix.Fdatasync(int(f.Fd()))
}

// keepMembers makes the store's members those of the servers, as long as this server
// leads.
func (c *Cluster) keepMembers(s *Store) {
	every := time.NewTicker(keepEvery)
	defer every.Stop()
	for {
		if err := c.reconcile(context.Background()); err != nil {
			c.config.Logger.Warn("the store's members are not the servers yet", slog.Any("because", err))
		}
		select {
		case <-s.Deposed():
			return
		case <-c.closing:
			return
		case <-every.C:
		}
	}
}

// reconcile makes one step towards a store whose members are those of the servers. What
// a server does not finish, the next one that leads does.
func (c *Cluster) reconcile(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	servers, err := c.Servers(ctx)
	if err != nil || len(servers) == 0 {
		return err
	}
	answer, err := c.client.MemberList(ctx)
	if err != nil {
		return fmt.Errorf("read who the store's members are: %w", explain(err))
	}
	missing, surplus := membersOf(servers, answer.Members)
	for _, id := range surplus { // first: etcd adds none while one cannot be reached
		if _, failed := c.client.MemberRemove(ctx, id); failed != nil {
			err = errors.Join(err, fmt.Errorf("end membership of %x in the store: %w", id, explain(failed)))
		}
	}
	for _, url := range missing {
		if _, failed := c.client.MemberAddAsLearner(ctx, []string{url}); failed != nil {
			err = errors.Join(err, fmt.Errorf("let %s become a member of the store: %w", url, explain(failed)))
		}
	}
	return err
}

// membersOf compares servers with members: URLs that no member has, and members that
// are no server's.
func membersOf(servers []Server, members []*etcdserverpb.Member) (missing []string, surplus []uint64) {
	of := map[string]bool{}
	for _, s := range servers {
		at := memberURL(s.Member)
		of[at.String()] = false
	}
	for _, m := range members {
		known := false
		for _, url := range m.PeerURLs {
			if _, ok := of[url]; ok {
				of[url], known = true, true
			}
		}
		if !known {
			surplus = append(surplus, m.ID)
		}
	}
	for url, there := range of {
		if !there {
			missing = append(missing, url)
		}
	}
	slices.Sort(missing)
	return missing, surplus
}

// awaitRemoval keeps a removed server's member until the others do without it.
func (c *Cluster) awaitRemoval() {
	select {
	case <-c.removed:
	default:
		return
	}
	select {
	case <-c.embedded.etcd.Server.StopNotify():
	case <-time.After(lastLook):
	}
}
