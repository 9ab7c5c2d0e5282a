package process

import "runtime"

// OnThread runs something on a thread that ends with it and is nobody else's
// meanwhile, and returns when it has: what is done to the thread, such as entering
// a namespace, is met by no other goroutine.
func OnThread(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if isFirstThread() {
			// This one ends with the process alone, and /proc/self is what it sees.
			// While it is locked, another goroutine is on another thread.
			OnThread(do)
			runtime.UnlockOSThread()
			return
		}
		do() // and, never unlocked, the thread ends
	}()
	<-done
}
