package realcluster

import (
	"github.com/tetherkube/tether/internal/e2e/process"
)

// startControllers starts kube-controller-manager and kube-scheduler.
func (c *Cluster) startControllers() error {
	files := c.Files()
	manager := []string{
		"--service-account-private-key-file=" + files.ServiceAccountKey,
		"--root-ca-file=" + files.CA,
		"--use-service-account-credentials",
		"--cluster-cidr=" + podNetwork,
	}
	if c.options.ShortTolerations {
		manager = append(manager,
			"--node-monitor-period=1s", "--node-monitor-grace-period=12s",
			// How many nodes a second may be found silent.
			"--node-eviction-rate=10")
	}
	if err := c.startController("system:kube-controller-manager", c.nodeSet.ControllerManager(), append(manager, c.options.ControllerManagerArgs...)); err != nil {
		return err
	}
	return c.startController("system:kube-scheduler", c.nodeSet.Scheduler(), nil)
}

func (c *Cluster) startController(user, program string, args []string) error {
	kubeconfig, err := c.kubeconfigOnMachines(user)
	if err != nil {
		return err
	}
	p, err := c.hub.Start(process.Options{Path: program, Args: append([]string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--cert-dir=" + c.dir,
		"--leader-elect=false", // there is one
		"--profiling=false",
	}, args...), KeepLines: 2000})
	if err != nil {
		return err
	}
	c.controllers = append(c.controllers, p)
	return nil
}

// kubeconfigOnMachines writes a kubeconfig file for a program on a machine.
func (c *Cluster) kubeconfigOnMachines(user string, groups ...string) (string, error) {
	cfg, err := c.ControlPlane.Client(user, groups...)
	if err != nil {
		return "", err
	}
	cfg.Host = c.MachineURL()
	return c.WriteKubeconfig(user, cfg)
}
