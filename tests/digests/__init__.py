"""Digests of what every kernel of the suite compiles to. `make digests` says which kernels changed, and in which stage.

    kernels/vector_add cuda:90 ttir=1f0c2a lane=77ab01 sim=same llir=0be3d1 ptx=90f2aa

A change that only moves code keeps `digests.txt` bit for bit; one that means to change what is generated updates the
file (`make digests UPDATE=1`) in a commit of its own, which says which lines change and why.
"""
