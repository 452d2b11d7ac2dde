package main

import (
	"context"
	"log/slog"
	"time"

	"sublet/lease/api"
	"sublet/openflow/controller"
	"sublet/vnet"
)

const (
	priceEvery = 2 * time.Second
	// fullPrice is what a link that leases have booked in full costs beside its hop, and
	// downPrice one that is out of order. Prices are in tenths of a hop.
	fullPrice = 9
	downPrice = 100 * controller.Hop
)

// followPrices keeps the prices of links as leases book them, until ctx ends. While there
// is no answer they stay.
func followPrices(ctx context.Context, client *api.Client, log *slog.Logger, set func(map[controller.Outlet]uint32)) {
	told := ""
	for ctx.Err() == nil {
		prices, err := readPrices(ctx, client)
		switch {
		case err == nil:
			set(prices)
			told = ""
		case ctx.Err() == nil && err.Error() != told:
			told = err.Error()
			log.Warn("what leases book of links is not known, and prices stay", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(priceEvery):
		}
	}
}

func readPrices(ctx context.Context, client *api.Client) (map[controller.Outlet]uint32, error) {
	sub, err := client.Substrate(ctx)
	if err != nil {
		return nil, err
	}
	links, err := client.Links(ctx)
	if err != nil {
		return nil, err
	}
	return pricesOf(sub, links), nil
}

// pricesOf are those of links that leave OpenFlow switches of the substrate.
func pricesOf(sub vnet.Substrate, links []api.Link) map[controller.Outlet]uint32 {
	prices := make(map[controller.Outlet]uint32)
	for _, l := range links {
		if o, speaks := sub.OpenFlowOf(l.From); speaks {
			prices[controller.Outlet{DatapathID: uint64(o.DatapathID), Port: o.Ports[l.Name]}] = priceOf(l)
		}
	}
	return prices
}

// priceOf grows with what is booked, in whole hops, so that small bookings move no path.
func priceOf(l api.Link) uint32 {
	if l.Down || l.Leasable <= 0 {
		return downPrice
	}
	return uint32(controller.Hop * (1 + min(l.Booked*fullPrice/l.Leasable, fullPrice)))
}
