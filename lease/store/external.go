package store

import (
	"fmt"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// dialTimeout bounds reaching an external cluster, and each silent spell of
// one that was reached.
const dialTimeout = 5 * time.Second

// silence bounds how long what was sent to a member of the cluster may stay without
// the acknowledgement of its kernel.
const silence = time.Second

// connect reaches an external cluster.
func connect(config Config) (*clientv3.Client, error) {
	c := clientv3.Config{
		Endpoints:            config.Endpoints,
		DialTimeout:          dialTimeout,
		DialKeepAliveTime:    dialTimeout,
		DialKeepAliveTimeout: silence,
		MaxCallSendMsgSize:   maxRequest,
		Logger:               zap.NewNop(), // its errors are returned as well
	}
	if config.CA != "" || config.Cert != "" {
		info := transport.TLSInfo{CertFile: config.Cert, KeyFile: config.Key, TrustedCAFile: config.CA}
		var err error
		if c.TLS, err = info.ClientConfig(); err != nil {
			return nil, fmt.Errorf("read the certificates for etcd at %v: %w", config.Endpoints, err)
		}
	}
	client, err := clientv3.New(c)
	if err != nil {
		return nil, fmt.Errorf("reach etcd at %v: %w", config.Endpoints, err)
	}
	return client, nil
}
