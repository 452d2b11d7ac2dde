package store

import (
	"context"
	"fmt"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"sublet/vnet"
)

// recordKey orders a tenant's records by serial.
func recordKey(r vnet.Record) string {
	return fmt.Sprintf("%s%s/%020d", ledgerKey, r.Tenant, r.Serial)
}

// Ledger reads up to limit records that follow a mark, by tenant and serial;
// of one tenant, or of all with "". The mark of the first page is "", each
// answer has that of the next; "": there is none.
func (s *Store) Ledger(ctx context.Context, tenant vnet.TenantID, after string, limit int) (records []vnet.Record, next string, err error) {
	all := s.key(ledgerKey) + "/"
	prefix := all
	if tenant != "" {
		prefix += string(tenant) + "/"
	}
	from := prefix
	if after != "" {
		from = max(from, all+after+"\x00")
	}
	page, err := s.client.Get(ctx, from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(prefix)), clientv3.WithLimit(int64(limit)))
	if err != nil {
		return nil, "", fmt.Errorf("read the ledger: %w", explain(err))
	}
	for _, kv := range page.Kvs {
		var r vnet.Record
		if err := unpack(kv.Value, &r); err != nil {
			return nil, "", fmt.Errorf("read %s of the ledger: %w", kv.Key, err)
		}
		records = append(records, r)
		next = strings.TrimPrefix(string(kv.Key), all)
	}
	if !page.More {
		next = ""
	}
	return records, next, nil
}
