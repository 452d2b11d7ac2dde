package store

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

const (
	// maxRequest bounds one transaction in bytes.
	maxRequest = 64 << 20
	// maxOps bounds the operations of one transaction.
	maxOps = 10_000
	// maxSocketPath is what fits in sockaddr_un with its terminating zero.
	maxSocketPath = 107
	// startTimeout bounds waiting for a member to find that somebody is elected.
	startTimeout = time.Minute
	// segment is the size in bytes of the files of etcd's log, which it
	// allocates one ahead; its own default of 64 MB is a third of /run on a
	// small machine.
	segment = 8 << 20
	// history is how many revisions are kept behind the newest.
	history = "1000"
)

func init() { wal.SegmentSizeBytes = segment }

// SocketName is the embedded etcd's only listener, in its data directory: for
// etcdctl and for backups. Sublet itself calls etcd in-process.
const SocketName = "etcd.sock"

// embedded is a member of etcd inside this process: the only one, without any port, or
// one of a cluster.
type embedded struct {
	etcd *embed.Etcd
	dir  string
	lock *os.File

	ballast *ballast
	closing atomic.Bool

	joins  []Server  // of the cluster that an empty directory becomes a member of
	shrunk time.Time // last
}

// startEmbedded starts etcd on its data directory. An empty one becomes a member of a
// cluster of the servers that are stated.
func startEmbedded(config Config, joins []Server) (*embedded, error) {
	if err := makePrivate(config.Dir); err != nil {
		return nil, err
	}
	lock, err := lockDir(config.Dir)
	if err != nil {
		return nil, err
	}
	e := &embedded{dir: config.Dir, lock: lock, joins: joins, ballast: newBallast(config.Dir, config.Reserve-config.floor())}
	if err = e.makeRoom(2*config.floor(), 0); err == nil {
		err = inspect(config.Dir)
	}
	e.closing.Store(joins != nil) // an attempt may be in vain, and is made again
	if err == nil {
		err = guarded(config.Dir, func() (err error) {
			e.etcd, err = embed.StartEtcd(e.config(config))
			return err
		})
	}
	e.closing.Store(false)
	if err == nil {
		err = e.ready()
	}
	if err != nil {
		e.stop()
		return nil, fmt.Errorf("start the store in %s: %w", config.Dir, err)
	}
	return e, nil
}

func (e *embedded) ready() error {
	select {
	case <-e.etcd.Server.ReadyNotify():
		return nil
	case err := <-e.etcd.Err():
		return e.unless(err)
	case <-e.etcd.Server.StopNotify():
		return e.unless(errors.New("it ended"))
	case <-time.After(startTimeout):
		return fmt.Errorf("not ready after %s: if it is a member of a cluster, most of the others must run, too", startTimeout)
	}
}

// unless gives the error of a member that ended before it was ready, unless the reason is
// that the others do without it.
func (e *embedded) unless(err error) error {
	select {
	case <-e.etcd.Server.StoppingNotify():
		return errors.New("it is of a server that was removed: move it away, and add this server again")
	default:
		return err
	}
}

// lockDir keeps a second process out: etcd itself would wait for the first
// without a word, after it took its socket away.
func lockDir(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the store: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("lock the store in %s: another server uses it", dir)
	}
	return lock, nil
}

// makePrivate makes dir with mode 0700, or refuses one that others can enter.
func makePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the store's directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at the store's directory: %w", err)
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if !info.IsDir() || owner != uint32(os.Geteuid()) {
		return fmt.Errorf("the store's directory %s must be a directory of user %d", dir, os.Geteuid())
	}
	if info.Mode().Perm() == 0o700 {
		return nil
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("make the store's directory private: %w", err)
	}
	return nil
}

// config is etcd with one member, no peers, no TCP and few words.
func (e *embedded) config(config Config) *embed.Config {
	c := embed.NewConfig()
	c.Name = "sublet"
	c.Dir = config.Dir
	c.InitialCluster = "sublet=unix://sublet"
	c.AdvertisePeerUrls = []url.URL{{Scheme: "unix", Host: "sublet"}}
	c.AdvertiseClientUrls = []url.URL{{Scheme: "unix", Host: "sublet"}}
	c.ListenPeerUrls, c.ListenClientUrls = nil, nil
	c.EnableGRPCGateway = false
	if socket := filepath.Join(config.Dir, SocketName); len(socket) <= maxSocketPath {
		c.ListenClientUrls = []url.URL{{Scheme: "unix", Path: socket}}
	}
	c.MaxRequestBytes = maxRequest
	c.MaxTxnOps = maxOps
	c.QuotaBackendBytes = config.Quota
	c.AutoCompactionMode, c.AutoCompactionRetention = embed.CompactorModeRevision, history
	c.SnapshotCount = 2_000 // entries of up to 1 MB stay in memory until a snapshot
	c.SnapshotCatchUpEntries = 100
	if config.Member != "" {
		e.amongOthers(c, config)
	}
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zapLogger(config.Logger.With(slog.String("of", "etcd")), &e.closing))
	return c
}

func (e *embedded) client() *clientv3.Client { return v3client.New(e.etcd.Server) }

func (e *embedded) stop() {
	e.closing.Store(true)
	if e.etcd != nil {
		e.etcd.Close()
	}
	e.lock.Close()
}
