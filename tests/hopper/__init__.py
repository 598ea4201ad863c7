"""Hopper: bulk copies, mbarriers, wgmma, partitions, from Triton's layout IR to the simulator."""
