// Command picture keeps what a browser shows of a view of the page:
//
//	sublet page &
//	go run ./tools/picture 'http://127.0.0.1:41235/#SECRET/map' docs/figures/page.png
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/chromedp/chromedp"
)

func main() {
	dark := flag.Bool("dark", false, "dark instead of light")
	click := flag.String("click", "", "selector of what is clicked first")
	wait := flag.Duration("wait", 5*time.Second, "time for rates to come")
	width, height := flag.Int("width", 1280, "of the window"), flag.Int("height", 800, "of the window")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "picture: state the address of the page, with its secret and the view, and the file to write")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := take(ctx, flag.Arg(0), flag.Arg(1), *dark, *click, *wait, *width, *height); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func take(ctx context.Context, address, file string, dark bool, click string, wait time.Duration, width, height int) error {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(width, height))
	ctx, cancel := chromedp.NewExecAllocator(ctx, options...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	theme := "light"
	if dark {
		theme = "dark"
	}
	steps := []chromedp.Action[chromedp.Void]{chromedp.Navigate(address), chromedp.WaitReady(chromedp.CSS("[data-ready]"))}
	if err := chromedp.Do(ctx, steps...); err != nil {
		return err
	}
	script := fmt.Sprintf("document.documentElement.dataset.theme !== %q && (localStorage.setItem('sublet.theme', %[1]q), location.reload()); true", theme)
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](script)); err != nil {
		return err
	}
	if err := chromedp.Do(ctx, chromedp.Sleep(time.Second), chromedp.WaitReady(chromedp.CSS("[data-ready]"))); err != nil {
		return err
	}
	if click != "" {
		if err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS(click))); err != nil {
			return err
		}
	}
	if err := chromedp.Do(ctx, chromedp.Sleep(wait)); err != nil {
		return err
	}
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		return err
	}
	return os.WriteFile(file, png, 0o644)
}
