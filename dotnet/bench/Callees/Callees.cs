// One caller with so many callees, each called in turn until so many calls are made: what an interpreter or generated code does.
using System;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;

internal static unsafe class Callees
{
    private static void Main(string[] arguments)
    {
        int count = int.Parse(arguments[0]), rounds = int.Parse(arguments[1]) / count;
        nint[] callees = Make(count);
        long sum = 0;
        for (int i = 0; i < rounds; i++) sum += Call(callees);
        Console.WriteLine(sum);
    }

    private static nint[] Make(int count)
    {
        AssemblyBuilder assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Made"), AssemblyBuilderAccess.Run);
        TypeBuilder type = assembly.DefineDynamicModule("Made").DefineType("Made", TypeAttributes.Public);
        for (int i = 0; i < count; i++)
        {
            MethodBuilder method = type.DefineMethod(
                $"M{i}", MethodAttributes.Public | MethodAttributes.Static, typeof(int), new[] { typeof(int) });
            method.SetImplementationFlags(MethodImplAttributes.NoInlining);
            ILGenerator il = method.GetILGenerator();
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Ldc_I4, i);
            il.Emit(OpCodes.Add);
            il.Emit(OpCodes.Ret);
        }
        Type made = type.CreateType()!;
        nint[] pointers = new nint[count];
        for (int i = 0; i < count; i++) pointers[i] = made.GetMethod($"M{i}")!.MethodHandle.GetFunctionPointer();
        return pointers;
    }

    [MethodImpl(MethodImplOptions.NoInlining | MethodImplOptions.AggressiveOptimization)]
    private static long Call(nint[] callees)
    {
        long sum = 0;
        for (int i = 0; i < callees.Length; i++) sum += ((delegate*<int, int>)callees[i])(1);
        return sum;
    }
}
